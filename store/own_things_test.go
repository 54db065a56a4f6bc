package store_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

var onePage = store.Page{Number: 1, Size: 50}

// own reads as a user's own, and returns the ids.
func ownExceptions(t *testing.T, s *store.Store, u exchange.User) (ids []uuid.UUID) {
	t.Helper()
	view := store.ViewOf(storetest.PrincipalOf(u), exchange.ActReadExceptions)
	all, total, err := s.ListExceptions(t.Context(), store.ExceptionFilter{View: &view}, onePage)
	if err != nil || total != len(all) {
		t.Fatalf("%d of %d, %v", len(all), total, err)
	}
	for _, x := range all {
		ids = append(ids, x.ID)
	}
	return ids
}

func wantOwn(t *testing.T, s *store.Store, want map[*exchange.User][]uuid.UUID) {
	t.Helper()
	for u, ids := range want {
		got := ownExceptions(t, s, *u)
		if len(got) != len(ids) || len(ids) == 1 && got[0] != ids[0] {
			t.Errorf("the %s sees the exceptions %v, want %v", u.Role, got, ids)
		}
	}
}

// Money on the wrong network is an exception of whose wallet it was meant for.
func TestMisfitsOfAWalletAreItsOwners(t *testing.T) {
	t.Parallel()
	for _, role := range []exchange.Role{exchange.RoleCustomer, exchange.RoleVendor} {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			s := started(t)
			owner, other, rival := storetest.User(t, s, role), storetest.User(t, s, exchange.RoleCustomer), storetest.User(t, s, exchange.RoleVendor)
			r := exchange.WalletRequest{
				ID: storetest.NewID(t), OwnerType: exchange.OwnerCustomer, OwnerID: owner.ID, VendorID: exchange.VendorOf(owner), Network: exchange.Ethereum, Asset: money.USDT,
				Type: exchange.Hot, CreatedBy: owner.ID,
			}
			if role == exchange.RoleVendor {
				r.OwnerType = exchange.OwnerMerchant
			}
			walletAt(t, s, r, spellings[0].ethereum)
			finalBlock(t, s, scanOf(blockOf("a", 101), moveOf("astray", stranger, spellings[0].tron, usdt("10"))))
			x := wantDeposit(t, s, "astray", exchange.DepositUnmatched, exchange.DepositFinal).ExceptionID
			want := map[*exchange.User][]uuid.UUID{&owner: {x}, &other: {}, &rival: {}}
			if role == exchange.RoleVendor {
				sub := storetest.Subvendor(t, s, owner)
				want[&sub] = []uuid.UUID{x}
			}
			wantOwn(t, s, want)
		})
	}
}

// Money that officers credited to a merchant is its own, whoever paid it for what.
func TestCreditedMoneyIsItsMerchants(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	other, third := storetest.User(t, s, exchange.RoleVendor), storetest.User(t, s, exchange.RoleVendor)
	x := latePayment(t, s, m)
	wantOwn(t, s, map[*exchange.User][]uuid.UUID{&m.Vendor: {x.ID}, &m.Customer: {x.ID}, &other: {}, &third: {}})
	d := decide(t, x, exchange.ExcCredited)
	d.MerchantID = other.ID
	if _, _, err := s.DecideException(t.Context(), d, officer(t, s)); err != nil {
		t.Fatal(err)
	}
	wantOwn(t, s, map[*exchange.User][]uuid.UUID{&m.Vendor: {x.ID}, &m.Customer: {x.ID}, &other: {x.ID}, &third: {}})
}

// The refund of crypto that came to a form of a wallet is its owner's, though it belongs to no order.
func TestRefundsOfAWalletAreItsOwners(t *testing.T) {
	t.Parallel()
	s := started(t)
	owner, other := storetest.User(t, s, exchange.RoleCustomer), storetest.User(t, s, exchange.RoleCustomer)
	walletAt(t, s, exchange.WalletRequest{
		ID: storetest.NewID(t), OwnerType: exchange.OwnerCustomer, OwnerID: owner.ID, Network: exchange.Ethereum, Asset: money.USDT, Type: exchange.Hot, CreatedBy: owner.ID,
	}, spellings[0].ethereum)
	finalBlock(t, s, scanOf(blockOf("a", 101), moveOf("astray", stranger, spellings[0].tron, usdt("10"))))
	x := wantDeposit(t, s, "astray", exchange.DepositUnmatched, exchange.DepositFinal).ExceptionID
	who := storetest.PrincipalOf(agent(t, s))
	request := exchange.RefundRequest{ID: storetest.NewID(t), ExceptionID: x, Address: outside, Reason: "theirs"}
	if err := s.SaveRefundRequest(t.Context(), request, who); err != nil {
		t.Fatal(err)
	}
	_, r, err := s.OpenChainRefund(t.Context(), exchange.ChainRefundRequest{ExceptionID: x, RequestID: request.ID}, who)
	if err != nil || r.OrderID != uuid.Nil {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, c := range []struct {
		who  exchange.User
		want int
	}{{owner, 1}, {other, 0}, {storetest.User(t, s, exchange.RoleVendor), 0}, {storetest.User(t, s, exchange.RoleTreasury), 1}} {
		view := store.ViewOf(storetest.PrincipalOf(c.who), exchange.ActReadExceptions)
		all, total, err := s.ListRefunds(t.Context(), store.RefundFilter{View: &view}, onePage)
		if err != nil || total != c.want || len(all) != c.want {
			t.Errorf("the %s sees %d refunds, %v", c.who.Role, total, err)
		}
	}
}

// The history of a wallet has both sides, and says what a payment of ours was for.
func TestHistoryOfAWalletHasBothSides(t *testing.T) {
	t.Parallel()
	s := started(t)
	m := storetest.NewMarket(t, s)
	o, p := paid(t, s, m)
	tx := sign(t, s, p)
	finalBlock(t, s, scanOf(blockOf("a", 101), moveOf("came", stranger, m.VendorWallet.Address, usdt("3")), moveOf(tx.TxID, p.FromAddress, p.ToAddress, p.Amount)))
	finalBlock(t, s, scanOf(blockOf("a", 102), moveOf("round", m.VendorWallet.Address, m.VendorWallet.Address, usdt("1"))))
	read := func(u exchange.User, w exchange.Wallet, f store.MovementFilter) ([]exchange.WalletMovement, error) {
		all, total, err := s.WalletMovements(t.Context(), store.ViewOf(storetest.PrincipalOf(u), exchange.ActReadWallets), w.ID, f, onePage)
		if err == nil && total != len(all) {
			t.Errorf("%d of %d", len(all), total)
		}
		return all, err
	}
	all, err := read(m.Vendor, m.VendorWallet, store.MovementFilter{})
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	byTx := map[string]exchange.WalletMovement{}
	for _, a := range all {
		byTx[a.TxID] = a
	}
	if in := byTx["came"]; in.Direction(m.VendorWallet.ID) != exchange.MovementIn || in.Purpose != "" || in.ObjectID != uuid.Nil {
		t.Errorf("what came is %+v", in)
	}
	if out := byTx[tx.TxID]; out.Direction(m.VendorWallet.ID) != exchange.MovementOut || out.Direction(m.CustomerWallet.ID) != exchange.MovementIn ||
		out.Purpose != exchange.ForOrder || out.ObjectID != o.ID {
		t.Errorf("what left is %+v", out)
	}
	for direction, want := range map[exchange.MovementDirection]string{exchange.MovementIn: "came", exchange.MovementOut: tx.TxID, exchange.MovementWithin: "round"} {
		one, err := read(m.Vendor, m.VendorWallet, store.MovementFilter{Direction: direction})
		if err != nil || len(one) != 1 || one[0].TxID != want {
			t.Errorf("%s is %+v, %v", direction, one, err)
		}
	}
	if theirs, err := read(m.Customer, m.CustomerWallet, store.MovementFilter{Kind: exchange.DepositOwn, Asset: money.USDT, Status: exchange.DepositFinal}); err != nil || len(theirs) != 1 {
		t.Errorf("the customer sees %+v, %v", theirs, err)
	}
	_, err = read(m.Customer, m.VendorWallet, store.MovementFilter{})
	wantFault(t, err, exchange.CodeNotFound)
}

// What is left of a limit is what the next transfer may be worth; a subvendor's also depends on the others of its merchant.
func TestLimitsShowWhatIsLeft(t *testing.T) {
	t.Parallel()
	p := newPurseIn(t, atNoon(t), "0.1")
	s, ctx := p.store, t.Context()
	merchant := storetest.User(t, s, exchange.RoleVendor)
	one, two := storetest.Subvendor(t, s, merchant), storetest.Subvendor(t, s, merchant)
	wallet := storetest.Wallet(t, s, merchant)
	storetest.Deposit(t, s, wallet.ID, usdt("1000"))
	admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	for u, l := range map[*exchange.User]exchange.SpendingLimits{
		&merchant: {PerTransaction: kes("3000"), PerDay: kes("4500"), PerMonth: kes("4000")}, &one: {PerDay: kes("1500")},
	} {
		if _, err := s.UpdateUser(ctx, u.ID, store.UserPatch{Limits: &l}, admin); err != nil {
			t.Fatal(err)
		}
	}
	send := func(who exchange.User, amount string) error {
		_, err := storetest.OpenTransfer(ctx, s, exchange.TransferRequest{
			ID: storetest.NewID(t), RequestedBy: who.ID, WalletID: wallet.ID, Network: exchange.Tron, Amount: usdt(amount), Recipient: exchange.Recipient{Address: outside},
		}, storetest.PrincipalOf(who))
		return err
	}
	left := func(who exchange.User) exchange.OwnLimits {
		t.Helper()
		o, err := s.OwnLimits(ctx, who)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if err := send(two, "20"); err != nil { // 3000 shillings
		t.Fatal(err)
	}
	if o := left(one); o.Left.PerTransaction.String() != "1000.00" || o.Left.PerDay.String() != "1000.00" || o.Left.PerMonth.String() != "1000.00" ||
		o.Used.Day.String() != "0.00" || o.Merchant.Used.Day.String() != "3000.00" || o.Merchant.Effective.PerDay.String() != "4500.00" {
		t.Errorf("a subvendor has %+v and %+v", o, o.Merchant)
	}
	wantFault(t, send(one, "6.67"), exchange.CodeLimitReached) // 1000.50 shillings
	if err := send(one, "6.66"); err != nil {
		t.Fatal(err)
	}
	if o := left(merchant); o.Merchant != nil || o.Left.PerTransaction.String() != "1.00" || o.Used.Month.String() != "3999.00" {
		t.Errorf("the merchant has %+v", o)
	}
	counts := map[exchange.LimitName]exchange.CountedLimit{}
	for _, c := range left(merchant).Counts {
		counts[c.Name] = c
	}
	if c := counts[exchange.LimitTransfers]; c.Used != 2 || c.Most < c.Used || counts[exchange.LimitWallets].Used != 1 || counts[exchange.LimitSubvendors].Used != 2 {
		t.Errorf("counted %+v", counts)
	}
	if o := left(p.sender); len(o.Counts) != 4 || len(o.Fees) != len(exchange.Networks()) || o.Fees[0].Most.IsZero() {
		t.Errorf("a customer has %+v", o)
	}
	if o := left(storetest.User(t, s, exchange.RoleTreasury)); o.Counts != nil || o.Fees != nil {
		t.Errorf("an officer has %+v", o)
	}
}

// Orders and sales that wait are counted as the refusal counts them.
func TestLimitsCountOrders(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.URL(t), store.Options{Limits: store.Limits{CustomerOrders: 2, CustomerTransfers: 50}})
	m := storetest.NewSellers(t, s)
	m.Sale(t, s, "10")
	m.Sale(t, s, "11")
	_, err := storetest.OpenOffRamp(t.Context(), s, exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("12"), Type: exchange.OffRampSell,
	}, storetest.PrincipalOf(m.Customer))
	wantFault(t, err, exchange.CodeLimitReached)
	o, err := s.OwnLimits(t.Context(), m.Customer)
	if err != nil {
		t.Fatal(err)
	}
	want := []exchange.CountedLimit{
		{Name: exchange.LimitOrdersWaiting, Used: 2, Most: 2},
		{Name: exchange.LimitUnpaidSales, Used: 2, Most: 10},
		{Name: exchange.LimitTransfers, Used: 0, Most: 50},
		{Name: exchange.LimitWallets, Used: 1, Most: store.MaxWalletsPerOwner},
	}
	for i, c := range o.Counts {
		if c != want[i] {
			t.Errorf("counted %+v, want %+v", c, want[i])
		}
	}
}
