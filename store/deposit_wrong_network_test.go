package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// spelling is one account in the form of both networks.
type spelling struct{ tron, ethereum string }

// The contract of USDT on TRON, that of USDT on Ethereum, and an unused account. Hexadecimal forms with the checksum
// of EIP-55.
var spellings = []spelling{
	{"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "0xa614f803B6FD780986A42c78Ec9c7f77e6DeD13C"},
	{"TVut7P3Wnem9TFcSAjow2WGETKFBs5CMyj", "0xdAC17F958D2ee523a2206206994597C13D831ec7"},
	{"T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb", "0x0000000000000000000000000000000000000000"},
}

// Both forms of an account derive from each other, and an invalid address has no counterpart.
func TestCounterpartAddresses(t *testing.T) {
	t.Parallel()
	db, err := storetest.Owner(t, storetest.New(t)).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // it ends with its pool in any case
	var schema string
	if err := db.QueryRowContext(t.Context(), `SELECT current_schema()`).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `SET search_path = ''`); err != nil { // as where a backup is restored
		t.Fatal(err)
	}
	counterpart := func(network, address string) string {
		t.Helper()
		var out *string
		if err := db.QueryRowContext(t.Context(), `SELECT `+schema+`.counterpart_address($1, $2)`, network, address).Scan(&out); err != nil {
			t.Fatal(err)
		}
		if out == nil {
			return ""
		}
		return *out
	}
	for _, s := range spellings {
		hex := strings.ToLower(s.ethereum)
		for _, form := range []string{s.ethereum, hex, "0x" + strings.ToUpper(hex[2:])} {
			if got := counterpart("ethereum", form); got != s.tron {
				t.Errorf("the counterpart of %s is %s, want %s", form, got, s.tron)
			}
		}
		if got := counterpart("tron", s.tron); got != hex {
			t.Errorf("the counterpart of %s is %s, want %s", s.tron, got, hex)
		}
	}
	for network, texts := range map[string][]string{
		"tron": {
			"", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj60",
			"1R7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "0xa614f803B6FD780986A42c78Ec9c7f77e6DeD13C",
		},
		"ethereum": {"", "0xa614f803B6FD780986A42c78Ec9c7f77e6DeD13", "0xa614f803B6FD780986A42c78Ec9c7f77e6DeD13G", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"},
		"solana":   {"0xa614f803B6FD780986A42c78Ec9c7f77e6DeD13C", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"},
	} {
		for _, text := range texts {
			if got := counterpart(network, text); got != "" {
				t.Errorf("on %s %q has the counterpart %s", network, text, got)
			}
		}
	}
}

// strayed is an open sale on a network whose escrow address has a counterpart on the other one, where deposits are
// read too.
type strayed struct {
	*sale
	other       exchange.Network
	counterpart string
	now         uint64 // the newest final block there
}

func straying(t *testing.T, n exchange.Network) *strayed {
	t.Helper()
	s := storetest.New(t)
	m := storetest.NewSellersOn(t, s, n)
	storetest.Exec(t, s, `UPDATE escrow_addresses SET status = 'disabled', reason = 'others are lent'`)
	x := &strayed{sale: &sale{s: s, m: m}, other: exchange.Ethereum, counterpart: spellings[0].ethereum, now: 100}
	address := spellings[0].tron
	if n == exchange.Ethereum {
		x.other, x.counterpart, address = exchange.Tron, spellings[0].tron, spellings[0].ethereum
	}
	x.e = walletAt(t, s, exchange.EscrowWallet(storetest.NewID(t), n), address)
	x.order = m.Sale(t, s, "10")
	if x.order.EscrowAddress != address {
		t.Fatalf("the order has the address %s", x.order.EscrowAddress)
	}
	if _, err := s.StartDeposits(t.Context(), x.other, blockOf("a", x.now)); err != nil {
		t.Fatal(err)
	}
	return x
}

func sealedFor(id uuid.UUID) exchange.SealedKey {
	return exchange.SealedKey{WalletID: id, Ciphertext: []byte("sealed for " + id.String()), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "secp256k1"}
}

func walletAt(t *testing.T, s *store.Store, r exchange.WalletRequest, address string) exchange.Wallet {
	t.Helper()
	w, err := storetest.CreateWallet(t.Context(), s, r, address, sealedFor(r.ID))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// scan is block n of a branch of the other network.
func (x *strayed) scan(branch string, n uint64, moved ...exchange.ChainMovement) exchange.BlockScan {
	return exchange.BlockScan{Network: x.other, Block: blockOf(branch, n), Movements: moved}
}

// comes books a movement to the counterpart in the next final block.
func (x *strayed) comes(t *testing.T, tx string, m money.Amount) exchange.ChainDeposit {
	t.Helper()
	x.now++
	b := x.scan("a", x.now, moveOf(tx, "stranger", x.counterpart, m))
	for range 2 {
		finalBlock(t, x.s, b)
	}
	return wantDeposit(t, x.s, tx, exchange.DepositUnmatched, exchange.DepositFinal)
}

func (x *strayed) counterparts(t *testing.T) []exchange.Wallet {
	t.Helper()
	all, _, err := x.s.ListWallets(t.Context(), store.Everything(), store.WalletFilter{Purpose: exchange.HouseCounterpart}, store.Page{Number: 1, Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (x *strayed) exceptions(t *testing.T) []exchange.PaymentException {
	t.Helper()
	all, _, err := x.s.ListExceptions(t.Context(), store.ExceptionFilter{}, store.Page{Number: 1, Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (x *strayed) exception(t *testing.T, d exchange.ChainDeposit) exchange.PaymentException {
	t.Helper()
	e, err := x.s.Exception(t.Context(), d.ExceptionID)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A deposit to the other form of an escrow address is in our custody but has no owner. One exception names the order
// that was most probably meant; in both directions, once for each movement, and only when it is final.
func TestMoneyOnTheWrongNetwork(t *testing.T) {
	t.Parallel()
	for _, n := range []exchange.Network{exchange.Tron, exchange.Ethereum} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			x := straying(t, n)
			lost := x.scan("b", 101, moveOf("lost", "stranger", x.counterpart, usdt("9")))
			lost.Block.Parent = "a-100"
			seenBlock(t, x.s, lost)
			if err := x.s.DropSeenBlock(t.Context(), x.other, lost.Block); err != nil {
				t.Fatal(err)
			}
			x.now++
			finalBlock(t, x.s, x.scan("a", x.now, moveOf("bait", "stranger", x.counterpart, usdt("0")), moveOf("bait", x.counterpart, "stranger", usdt("0"))))
			if counterparts, open, known := x.counterparts(t), x.exceptions(t), deposits(t, x.s, "lost"); len(counterparts)+len(open)+len(known) != 0 {
				t.Fatalf("nothing final came, and there are %v, %v and %v", counterparts, open, known)
			}
			d := x.comes(t, "first", usdt("10"))
			counterparts := x.counterparts(t)
			if len(counterparts) != 1 {
				t.Fatalf("the counterparts are %+v", counterparts)
			}
			w := counterparts[0]
			if w.Network != x.other || w.Address != x.counterpart || w.CounterpartOf != x.e.ID || w.OwnerID != uuid.Nil || w.Type != exchange.Hot || d.WalletID != w.ID {
				t.Errorf("the counterpart is %+v, the deposit %+v", w, d)
			}
			e := x.exception(t, d)
			if e.Kind != exchange.ExcWrongNetwork || e.Status != exchange.ExcOpen || e.OrderID != x.order.ID || !e.Amount.Equal(usdt("10")) {
				t.Errorf("the exception is %+v", e)
			}
			if on, found := e.ChainOf(); !found || on != x.other {
				t.Errorf("the exception is about %s (%t)", on, found)
			}
			wantBalance(t, x.s, custody(w), "10", "0")
			wantBalance(t, x.s, exchange.House(exchange.AccSuspense, money.USDT), "10", "0")
			wantBalance(t, x.s, custody(x.e), "0", "0")
			seenBlock(t, x.s, x.scan("a", x.now+1, moveOf("second", "stranger", x.counterpart, usdt("2"))))
			wantBalance(t, x.s, custody(w), "10", "0")
			x.comes(t, "second", usdt("2"))
			coin := money.Must(x.other.NativeCoin(), "3")
			if e := x.exception(t, x.comes(t, "coin", coin)); e.Kind != exchange.ExcWrongNetwork || !e.Amount.Equal(coin) {
				t.Errorf("the exception of a coin is %+v", e)
			}
			if counterparts, open := x.counterparts(t), x.exceptions(t); len(counterparts) != 1 || len(open) != 3 {
				t.Errorf("there are %d counterparts and %d exceptions", len(counterparts), len(open))
			}
			wantBalance(t, x.s, custody(w), "12", "0")
			if o, err := x.s.Order(t.Context(), store.Everything(), x.order.ID); err != nil || o.Status != exchange.OrderPending {
				t.Errorf("the order is %s, %v", o.Status, err)
			}
			wantBooks(t, x.s)
		})
	}
}

// For an address that was lent and returned, the order that borrowed it when the money was sent is found.
func TestWrongNetworkFindsTheOrderOfItsTime(t *testing.T) {
	t.Parallel()
	x := straying(t, exchange.Tron)
	if _, err := x.s.CloseOffRamp(t.Context(), x.order.ID, exchange.DetailCancelled, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.s.ReleaseEscrow(t.Context(), x.order.ID); err != nil {
		t.Fatal(err)
	}
	if e := x.exception(t, x.comes(t, "late", usdt("10"))); e.Kind != exchange.ExcWrongNetwork || e.OrderID != x.order.ID {
		t.Errorf("the exception is %+v", e)
	}
	x.now++
	early := x.scan("a", x.now, moveOf("early", "stranger", x.counterpart, usdt("4")))
	early.Block.Time = time.Now().Add(-24 * time.Hour)
	finalBlock(t, x.s, early)
	if e := x.exception(t, deposits(t, x.s, "early")[0]); e.Kind != exchange.ExcWrongNetwork || e.OrderID != uuid.Nil {
		t.Errorf("the exception of money from before the order is %+v", e)
	}
}

// Customers' wallets and the house's have counterparts too, without a known order.
func TestWrongNetworkOfOtherWallets(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	if _, err := s.StartDeposits(t.Context(), exchange.Ethereum, blockOf("a", 100)); err != nil {
		t.Fatal(err)
	}
	owner := storetest.User(t, s, exchange.RoleCustomer)
	of := walletAt(t, s, exchange.WalletRequest{
		ID: storetest.NewID(t), OwnerType: exchange.OwnerCustomer, OwnerID: owner.ID, Network: exchange.Tron, Asset: money.USDT, Type: exchange.Cold,
	}, spellings[1].tron)
	finalBlock(t, s, exchange.BlockScan{Network: exchange.Ethereum, Block: blockOf("a", 101), Movements: []exchange.ChainMovement{
		moveOf("t", "stranger", spellings[1].ethereum, usdt("10")), moveOf("u", spellings[1].ethereum, "stranger", usdt("4")),
	}})
	d := wantDeposit(t, s, "t", exchange.DepositUnmatched, exchange.DepositFinal)
	if e, err := s.Exception(t.Context(), d.ExceptionID); err != nil || e.Kind != exchange.ExcWrongNetwork || e.OrderID != uuid.Nil {
		t.Errorf("the exception is %+v, %v", e, err)
	}
	w, err := s.Wallet(t.Context(), store.Everything(), d.WalletID)
	if err != nil || w.CounterpartOf != of.ID || w.Type != exchange.Cold || w.OwnerID != uuid.Nil {
		t.Errorf("the counterpart is %+v, %v", w, err)
	}
	wantBalance(t, s, exchange.Owned(exchange.AccWalletBalance, of.ID, money.USDT), "0", "0")
	wantDeposit(t, s, "u", exchange.DepositOutgoing, exchange.DepositFinal)
	if open, err := s.OpenQuarantine(t.Context(), exchange.Ethereum); err != nil || len(open) != 1 || open[0].Reason != exchange.QuarantineOutgoing {
		t.Errorf("what a counterpart sends without us raises %+v, %v", open, err)
	}
	wantBooks(t, s)
}

// A deposit to a counterpart is refunded to an address that one officer gave and another approved, never to the
// order's own, which is of the other network. It is signed with the key of the original wallet.
func TestWrongNetworkIsRefunded(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), straying(t, exchange.Tron)
	by := storetest.PrincipalOf(x.m.Customer)
	if _, err := x.s.SetRefundAddress(ctx, store.Everything(), x.order.ID, homeOfCoins, nil, by); err != nil {
		t.Fatal(err)
	}
	d := x.comes(t, "first", usdt("10"))
	one, two := agent(t, x.s), agent(t, x.s)
	open := func(address string) (exchange.Refund, error) {
		request := exchange.ChainRefundRequest{ExceptionID: d.ExceptionID}
		if address != "" {
			request.RequestID = x.asks(t, one, d.ExceptionID, address)
		}
		_, r, err := x.s.OpenChainRefund(ctx, request, storetest.PrincipalOf(one))
		return r, err
	}
	r := twice(t, sameRefund, func() (exchange.Refund, error) { return open("") })
	if r.Address != "" || r.Network != exchange.Ethereum || r.WalletID != d.WalletID || r.OrderID != x.order.ID {
		t.Fatalf("the refund is %+v", r)
	}
	x.standing(t, r, exchange.RefundWaitsAddress)
	const home = "0x00000000000000000000000000000000000000aA"
	for address, code := range map[string]exchange.Code{x.counterpart: exchange.CodeInvalid, strings.ToLower(x.counterpart): exchange.CodeInvalid} {
		_, err := x.s.AddressRefund(ctx, r.ID, x.asks(t, one, d.ExceptionID, address), storetest.PrincipalOf(one))
		wantFault(t, err, code)
	}
	s, err := x.s.AddressRefund(ctx, r.ID, x.asks(t, one, d.ExceptionID, home), storetest.PrincipalOf(one))
	if err != nil || s.Wait != exchange.RefundWaitsOfficer || s.Needed != 1 {
		t.Fatalf("it stands at %+v, %v", s, err)
	}
	x.agrees(t, s.Refund, two)
	p := x.standing(t, r, exchange.RefundReady).Payment
	if p.Network != exchange.Ethereum || p.WalletID != d.WalletID || p.FromAddress != x.counterpart || p.ToAddress != home {
		t.Fatalf("the payment is %+v", p)
	}
	clears(t, x.s, p)
	_, sealed, err := x.s.PaymentForSigning(ctx, p.ID)
	if err != nil || len(sealed) != 1 || sealed[0].WalletID != x.e.ID || sealed[0].Network != exchange.Tron || string(sealed[0].Ciphertext) != "sealed for "+x.e.ID.String() {
		t.Fatalf("it signs with %+v, %v", sealed, err)
	}
	eth := money.Must(money.ETH, "1")
	storetest.Gas(t, x.s, p.WalletID, eth)
	tx, err := x.s.SaveSignedAttempt(ctx, numbered(t, p, 0))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := x.s.RecordFinal(ctx, tx.ID, true, 200, "a-200", money.Must(money.ETH, "0.25"), "SUCCESS"); err != nil {
			t.Fatal(err)
		}
	}
	if e := x.exception(t, d); e.Status != exchange.ExcRefunded {
		t.Errorf("the exception is %s", e.Status)
	}
	w := exchange.Wallet{ID: d.WalletID}
	wantBalance(t, x.s, custody(w), "0", "0")
	wantBalance(t, x.s, owed(w, money.USDT), "0", "0")
	wantBalance(t, x.s, exchange.House(exchange.AccSuspense, money.USDT), "0", "0")
	wantBooks(t, x.s)
}

// An address of the sale's own network can't be the refund address; one requested with the refund is used.
func TestWrongNetworkIsRefundedToAGivenAddress(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), straying(t, exchange.Tron)
	by := storetest.PrincipalOf(x.m.Customer)
	if _, err := x.s.SetRefundAddress(ctx, store.Everything(), x.order.ID, homeOfCoins, nil, by); err != nil {
		t.Fatal(err)
	}
	d, one := x.comes(t, "first", usdt("10")), agent(t, x.s)
	const home = "0x00000000000000000000000000000000000000aA"
	request := exchange.ChainRefundRequest{ExceptionID: d.ExceptionID, RequestID: x.asks(t, one, d.ExceptionID, home)}
	_, r, err := x.s.OpenChainRefund(ctx, request, storetest.PrincipalOf(one))
	if err != nil || r.Address != home || r.AddressedBy != one.ID {
		t.Fatalf("the refund is %+v, %v", r, err)
	}
	x.standing(t, r, exchange.RefundWaitsOfficer)
}

// The part that the house keeps goes to the treasury of the network where it lies.
func TestWrongNetworkIsKept(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), straying(t, exchange.Ethereum)
	d, who := x.comes(t, "first", usdt("10")), storetest.PrincipalOf(agent(t, x.s))
	credit := exchange.ExceptionDecision{ID: storetest.NewID(t), ExceptionID: d.ExceptionID, Verdict: exchange.ExcCredited, WalletID: d.WalletID, Reason: "x"}
	_, _, err := x.s.DecideException(ctx, credit, who)
	wantFault(t, err, exchange.CodeInvalid) // a counterpart has no owner
	decision := exchange.ExceptionDecision{ID: storetest.NewID(t), ExceptionID: d.ExceptionID, Verdict: exchange.ExcWrittenOff, Reason: "nobody answers"}
	if _, _, err := x.s.DecideException(ctx, decision, who); err != nil {
		t.Fatal(err)
	}
	want := []exchange.KeptDeposit{{ExceptionID: d.ExceptionID, Network: exchange.Tron}}
	if got, err := x.s.KeptUnmoved(ctx, time.Now().Add(time.Hour), 10); err != nil || !slices.Equal(got, want) {
		t.Errorf("on its way to nowhere is %v, %v", got, err)
	}
	treasury := storetest.TreasuryWallet(t, x.s, exchange.Tron)
	p := twice(t, samePayment, func() (exchange.ChainPayment, error) { return x.s.ApproveKeptSweep(ctx, d.ExceptionID) })
	if p.ToAddress != treasury.Address || p.WalletID != d.WalletID || p.Network != exchange.Tron {
		t.Fatalf("the payment is %+v", p)
	}
	x.carriedOut(t, p)
	wantBalance(t, x.s, custody(exchange.Wallet{ID: d.WalletID}), "0", "0")
	wantBalance(t, x.s, owed(treasury, money.USDT), "10", "0")
	wantBooks(t, x.s)
}

// The wrong network's form of an address of ours is never paid, whether or not a deposit came there.
func TestNothingIsPaidOnTheWrongNetwork(t *testing.T) {
	t.Parallel()
	for _, came := range []bool{false, true} {
		t.Run(fmt.Sprint(came), func(t *testing.T) {
			t.Parallel()
			ctx, x := t.Context(), straying(t, exchange.Ethereum)
			if came {
				x.comes(t, "first", usdt("10"))
			}
			wantField := func(what string, err error, pointer string) {
				t.Helper()
				if exchange.CodeOf(err) != exchange.CodeInvalid || fieldOf(err) != pointer {
					t.Errorf("%s: %v", what, err)
				}
			}
			m := storetest.NewMarket(t, x.s) // on TRON
			_, err := storetest.OpenOrder(ctx, x.s, exchange.OrderRequest{
				ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10"), WalletAddress: x.counterpart,
			}, storetest.PrincipalOf(m.Customer))
			wantField("an order", err, "/wallet_address")
			p := newPurseIn(t, x.s, "100")
			_, err = storetest.OpenTransfer(ctx, x.s, p.request(t, "5", exchange.Recipient{Address: x.counterpart}), storetest.PrincipalOf(p.sender))
			wantField("a transfer", err, "/recipient/address")
			house := p.request(t, "5", exchange.Recipient{Address: x.counterpart})
			house.RequestedBy, house.WalletID = agent(t, x.s).ID, storetest.TreasuryWallet(t, x.s, exchange.Tron).ID
			_, err = storetest.OpenTransfer(ctx, x.s, house, exchange.Principal{UserID: house.RequestedBy, Role: exchange.RoleTreasury, RequestID: "test"})
			wantField("a transfer of the house", err, "/recipient/address")
			sellers := storetest.NewSellers(t, x.s)
			_, err = storetest.OpenOffRamp(ctx, x.s, exchange.OrderRequest{
				ID: storetest.NewID(t), CustomerID: sellers.Customer.ID, OfferID: sellers.Offer.ID, Crypto: usdt("10"), Type: exchange.OffRampSell, RefundAddress: x.counterpart,
			}, storetest.PrincipalOf(sellers.Customer))
			wantField("a sale", err, "/refund_address")
		})
	}
}

// An order to an address that turns out to be ours on the wrong network is not delivered: its crypto would be seen as
// ours and be owed to no owner.
func TestDatabasePaysNoCounterpart(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	o, err := storetest.OpenOrder(ctx, s, exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10"), WalletAddress: spellings[1].tron,
	}, storetest.PrincipalOf(m.Customer))
	if err != nil {
		t.Fatal(err)
	}
	walletAt(t, s, exchange.EscrowWallet(storetest.NewID(t), exchange.Ethereum), spellings[1].ethereum)
	if _, err := s.AcceptPayment(ctx, storetest.Attempt(t, s, o).ID, storetest.Paid(t, o.Price.Fiat), time.Time{}); err == nil {
		t.Error("its crypto goes to a counterpart")
	}
	p := newPurseIn(t, s, "100")
	_, err = storetest.Owner(t, s).ExecContext(ctx, `INSERT INTO transfers (id, status, network, to_address) VALUES ($1, 'created', 'tron', $2)`, storetest.NewID(t), spellings[1].tron)
	if err == nil || !strings.Contains(err.Error(), "on the wrong network") {
		t.Errorf("a transfer past the code: %v", err)
	}
	if f := p.open(t, "5", exchange.Recipient{Address: outside}); f.ToAddress != outside {
		t.Errorf("the transfer is %+v", f)
	}
}

// The database refuses two wallets with one key, other counterparts, and counterparts with keys of their own.
func TestDatabaseGuardsCounterparts(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), straying(t, exchange.Tron)
	for _, address := range []string{x.counterpart, strings.ToLower(x.counterpart)} {
		r := exchange.EscrowWallet(storetest.NewID(t), exchange.Ethereum)
		_, err := storetest.CreateWallet(ctx, x.s, r, address, sealedFor(r.ID))
		wantFault(t, err, exchange.CodeConflict)
	}
	x.comes(t, "first", usdt("10"))
	counterpart := x.counterparts(t)[0]
	app := x.app(t)
	const insert = `INSERT INTO wallets (id, owner_type, purpose, network, address, asset, type, custody, label, is_default, counterpart_of, created_at, updated_at)
		VALUES (gen_random_uuid(), 'treasury', $1, $2, $3, 'USDT', $4, 'custodial', '', false, $5, now(), now())`
	fresh := walletAt(t, x.s, exchange.EscrowWallet(storetest.NewID(t), exchange.Tron), spellings[1].tron)
	for what, args := range map[string][]any{
		"another key":                    {"counterpart", "ethereum", spellings[0].ethereum, "hot", fresh.ID},
		"the same network":               {"counterpart", "tron", spellings[1].tron + "x", "hot", fresh.ID},
		"a stranger's address":           {"counterpart", "ethereum", "0x00000000000000000000000000000000000000aA", "hot", fresh.ID},
		"another type":                   {"counterpart", "ethereum", spellings[1].ethereum, "cold", fresh.ID},
		"a counterpart of a counterpart": {"counterpart", "tron", spellings[0].tron, "hot", counterpart.ID},
		"a second one":                   {"counterpart", "ethereum", spellings[0].ethereum, "hot", x.e.ID},
		"no wallet behind it":            {"counterpart", "ethereum", spellings[1].ethereum, "hot", nil},
		"another purpose":                {"escrow", "ethereum", spellings[1].ethereum, "hot", fresh.ID},
	} {
		if _, err := app.ExecContext(ctx, insert, args...); err == nil {
			t.Errorf("a counterpart was made that is %s", what)
		}
	}
	if _, err := app.ExecContext(ctx, insert, "counterpart", "ethereum", spellings[1].ethereum, "hot", fresh.ID); err != nil {
		t.Errorf("a true counterpart is refused: %v", err)
	}
	third := walletAt(t, x.s, exchange.EscrowWallet(storetest.NewID(t), exchange.Tron), spellings[2].tron)
	for _, query := range []string{
		`INSERT INTO wallet_keys (wallet_id, ciphertext, master_key, public_key, algorithm) VALUES ('` + counterpart.ID.String() + `', 'x', 'test', 'x', 'secp256k1')`,
		`UPDATE wallets SET counterpart_of = '` + third.ID.String() + `' WHERE id = '` + counterpart.ID.String() + `'`,
		`UPDATE wallets SET counterpart = 'Telse' WHERE id = '` + counterpart.ID.String() + `'`,
	} {
		if _, err := app.ExecContext(ctx, query); err == nil {
			t.Errorf("it was done: %s", query)
		}
	}
}
