package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// house is a bureau that buys crypto itself: with its own shillings, a treasury wallet and escrow addresses.
type house struct {
	*store.Store
	treasury, wallet exchange.Wallet
	customer         exchange.User
}

func openHouse(t *testing.T) house {
	t.Helper()
	h := house{Store: storetest.New(t)}
	storetest.Rate(t, h.Store, bureau{}.entry(t, "129", "131"))
	storetest.AgreeValuations(t, h.Store)
	storetest.Shillings(t, h.Store, exchange.PlatformTreasury, kes("5000"))
	h.treasury = storetest.TreasuryWallet(t, h.Store, exchange.Tron)
	storetest.EscrowPool(t, h.Store, exchange.Tron, 8)
	h.customer = storetest.User(t, h.Store, exchange.RoleCustomer)
	h.wallet = storetest.Wallet(t, h.Store, h.customer)
	return h
}

// promised is a quote for the proceeds of an amount.
func (h house) promised(t *testing.T, who exchange.User, amount string) exchange.FXQuote {
	t.Helper()
	q, err := h.OpenQuote(t.Context(), store.QuoteRequest{
		ID: storetest.NewID(t), Purpose: exchange.QuoteForSale, Side: exchange.QuoteSell, Amount: usdt(amount),
	}, storetest.PrincipalOf(who))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func (h house) request(t *testing.T, q exchange.FXQuote) exchange.OrderRequest {
	return exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: h.customer.ID, Type: exchange.OffRampSell, Subtype: exchange.TreasuryOffRamp, QuoteID: q.ID,
		Network: exchange.Tron, Crypto: q.Price.Crypto,
	}
}

// The house buys at the quoted price, with its own shillings, into its treasury.
func TestSalesToTheTreasury(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), openHouse(t)
	by := storetest.PrincipalOf(h.customer)
	q := h.promised(t, h.customer, "10.5")
	r := h.request(t, q)
	o := twice(t, sameOrder, func() (exchange.Order, error) { return storetest.OpenOffRamp(ctx, h.Store, r, by) })
	if o.VendorID != exchange.PlatformTreasury || o.OfferID != uuid.Nil || o.WalletID != h.treasury.ID || o.QuoteID != q.ID || !o.Rate.Equal(q.Price.Rate) {
		t.Errorf("the sale is %+v", o)
	}
	if o.Price.Fiat.String() != "1354.00" || o.Price.Vendor.String() != "1354.50" || !o.Price.Fiat.Equal(q.Price.Fiat) {
		t.Errorf("it brings %s of %s, promised were %s", o.Price.Fiat, o.Price.Vendor, q.Price.Fiat)
	}
	pool := exchange.Owned(exchange.AccFiatBalance, exchange.PlatformTreasury, money.KES)
	wantBalance(t, h.Store, pool, "5000", "1354.50")
	used, err := h.Quote(ctx, store.Everything(), q.ID)
	if err != nil || used.Status != exchange.QuoteConsumed || used.ObjectType != "order" || used.ObjectID != o.ID {
		t.Errorf("the quote is %s by %s %s, %v", used.Status, used.ObjectType, used.ObjectID, err)
	}
	r.ID = storetest.NewID(t)
	_, err = storetest.OpenOffRamp(ctx, h.Store, r, by)
	wantFault(t, err, exchange.CodeStateConflict)

	_, err = storetest.OpenOffRamp(ctx, h.Store, h.request(t, h.promised(t, h.customer, "50")), by)
	wantFault(t, err, exchange.CodeInsufficientFunds) // the house has 3645.50 left
	if _, err := h.CloseOffRamp(ctx, o.ID, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, h.Store, pool, "5000", "0")
	wantBooks(t, h.Store)
}

// One officer, who enters rates and raises valuations alone, can't make the house pay more than two agreed.
func TestPriceOfASaleTakesTwoOfficers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := newBoard(t, store.Options{Now: func() time.Time { return now }})
	ctx, s := t.Context(), b.store
	seller := storetest.User(t, s, exchange.RoleCustomer)
	rate := func(bid, ask string) {
		t.Helper()
		now = now.Add(time.Second)
		agreedRate(t, s, bureau{}.entry(t, bid, ask), b.one)
	}
	quote := func() error {
		_, err := s.OpenQuote(ctx, store.QuoteRequest{
			ID: storetest.NewID(t), Purpose: exchange.QuoteForSale, Side: exchange.QuoteSell, Amount: usdt("10"),
		}, storetest.PrincipalOf(seller))
		return err
	}
	worth := func(kes string) exchange.ControlChange {
		return b.patch(t, store.LimitPatch{Valuations: map[money.Asset]decimal.Decimal{money.USDT: decimal.RequireFromString(kes)}})
	}
	rate("129", "130")
	wantFault(t, quote(), exchange.CodeStateConflict) // nothing is agreed yet: the first valuation is no agreement
	if _, err := s.ConfirmChange(ctx, worth("149").ID, "that much", b.officer); err != nil {
		t.Fatal(err)
	}
	rate("163.9", "166") // a tenth above what two agreed to
	if err := quote(); err != nil {
		t.Fatal(err)
	}
	rate("163.91", "166")
	wantFault(t, quote(), exchange.CodeStateConflict)
	rate("25000", "25000")
	wantFault(t, quote(), exchange.CodeStateConflict)
	if c := worth("25000"); c.ID != uuid.Nil {
		t.Fatal("a higher valuation waits for a second officer")
	}
	wantFault(t, quote(), exchange.CodeStateConflict)
	storetest.Exec(t, s, `UPDATE valuations SET agreed = rate`)
	wantFault(t, quote(), exchange.CodeStateConflict)
	if _, err := s.ConfirmChange(ctx, worth("24999").ID, "that much", b.officer); err != nil {
		t.Fatal(err)
	}
	if err := quote(); err != nil {
		t.Errorf("a price that two agreed to: %v", err)
	}
}

// A quote is for its requester, its amount and its purpose, and expires.
func TestQuotesOfSalesAreHeldToTheirTerms(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), openHouse(t)
	other := storetest.User(t, h.Store, exchange.RoleCustomer)
	sending, err := h.OpenQuote(ctx, store.QuoteRequest{ID: storetest.NewID(t), Purpose: exchange.QuoteForTransfer, Side: exchange.QuoteSell, Amount: usdt("10")}, storetest.PrincipalOf(h.customer))
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.OpenQuote(ctx, store.QuoteRequest{ID: storetest.NewID(t), Purpose: exchange.QuoteForSale, Side: exchange.QuoteBuy, Amount: usdt("10")}, storetest.PrincipalOf(h.customer))
	if blames(err) != "/side enum" {
		t.Errorf("a sale that buys: %v", err)
	}
	theirs := h.promised(t, other, "10")
	for name, c := range map[string]struct {
		change func(*exchange.OrderRequest)
		want   string
	}{
		"somebody else's":  {func(r *exchange.OrderRequest) { r.QuoteID = theirs.ID }, "/fx_rate_quote_id not_found"},
		"of a transfer":    {func(r *exchange.OrderRequest) { r.QuoteID = sending.ID }, "/fx_rate_quote_id mismatch"},
		"another amount":   {func(r *exchange.OrderRequest) { r.Crypto = usdt("10.000001") }, "/crypto_amount mismatch"},
		"another asset":    {func(r *exchange.OrderRequest) { r.Crypto = money.Must(money.USDC, "10") }, "/asset mismatch"},
		"no network":       {func(r *exchange.OrderRequest) { r.Network = "" }, "/network required"},
		"an offer":         {func(r *exchange.OrderRequest) { r.OfferID = storetest.NewID(t) }, "/offer_id forbidden"},
		"another's wallet": {func(r *exchange.OrderRequest) { r.FundWalletID = storetest.Wallet(t, h.Store, other).ID }, "/wallet_id not_found"},
	} {
		r := h.request(t, h.promised(t, h.customer, "10"))
		c.change(&r)
		if _, err := storetest.OpenOffRamp(ctx, h.Store, r, storetest.PrincipalOf(h.customer)); blames(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	r := h.request(t, h.promised(t, h.customer, "10"))
	r.Network = exchange.Ethereum
	_, err = storetest.OpenOffRamp(ctx, h.Store, r, storetest.PrincipalOf(h.customer))
	wantFault(t, err, exchange.CodeStateConflict) // it has no treasury there
	late := h.promised(t, h.customer, "10")
	storetest.Exec(t, h.Store, `ALTER TABLE fx_quotes DISABLE TRIGGER USER; UPDATE fx_quotes SET created_at = created_at - interval '1 hour', expires_at = expires_at - interval '1 hour'`)
	_, err = storetest.OpenOffRamp(ctx, h.Store, h.request(t, late), storetest.PrincipalOf(h.customer))
	wantFault(t, err, exchange.CodeExpired)
	wantBalance(t, h.Store, exchange.Owned(exchange.AccFiatBalance, exchange.PlatformTreasury, money.KES), "5000", "0")
}

// A merchant sells to the house like a customer, also through its subvendor, and sees its sales.
func TestMerchantsSellToTheTreasury(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), openHouse(t)
	vendor := storetest.User(t, h.Store, exchange.RoleVendor)
	sub := storetest.Subvendor(t, h.Store, vendor)
	by := storetest.PrincipalOf(sub)
	r := h.request(t, h.promised(t, sub, "10"))
	r.CustomerID, r.OpenerID = vendor.ID, sub.ID
	o, err := storetest.OpenOffRamp(ctx, h.Store, r, by)
	if err != nil {
		t.Fatal(err)
	}
	if o.CustomerID != vendor.ID || o.OpenedBy != sub.ID || o.PaymentPhone != vendor.PhoneNumber {
		t.Errorf("the sale is of %s, opened by %s, paid to %s", o.CustomerID, o.OpenedBy, o.PaymentPhone)
	}
	for _, p := range []exchange.User{vendor, sub} {
		view := store.ViewOf(storetest.PrincipalOf(p), exchange.ActReadOrders)
		if got, err := h.Order(ctx, view, o.ID); err != nil || got.ID != o.ID {
			t.Errorf("a %s reads %s, %v", p.Role, got.ID, err)
		}
		list, total, err := h.ListOrders(ctx, view, store.OrderFilter{}, store.Page{Number: 1, Size: 10})
		if err != nil || total != 1 || len(list) != 1 {
			t.Errorf("a %s lists %d, %v", p.Role, total, err)
		}
		if found, _, err := h.SearchOrders(ctx, view, o.ID.String(), store.Page{Number: 1, Size: 10}); err != nil || len(found) != 1 {
			t.Errorf("a %s finds %d, %v", p.Role, len(found), err)
		}
		if told, err := h.OrderTimeline(ctx, view, o.ID); err != nil || len(told) == 0 {
			t.Errorf("a %s reads a timeline of %d, %v", p.Role, len(told), err)
		}
	}
	rival := store.ViewOf(storetest.PrincipalOf(storetest.User(t, h.Store, exchange.RoleVendor)), exchange.ActReadOrders)
	_, err = h.Order(ctx, rival, o.ID)
	wantFault(t, err, exchange.CodeNotFound)
	var hears uuid.UUID
	err = storetest.Owner(t, h.Store).QueryRowContext(ctx, `SELECT vendor_id FROM events WHERE object_id = $1 AND type = 'order.opened'`, o.ID).Scan(&hears)
	if err != nil || hears != vendor.ID {
		t.Errorf("%s is notified of the sale, want the merchant %s; %v", hears, vendor.ID, err)
	}
}

// A remittance from a custodial wallet needs the crypto there, and is refunded there.
func TestCustodialRemittances(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), openHouse(t)
	if err := h.SeedCatalogs(ctx); err != nil {
		t.Fatal(err)
	}
	by := storetest.PrincipalOf(h.customer)
	r := h.request(t, h.promised(t, h.customer, "10"))
	r.Subtype, r.FundWalletID, r.Network, r.PayoutMethod = exchange.CustodialRemittanceOffRamp, h.wallet.ID, "", exchange.PaymentMethodBank
	r.Sender = exchange.Sender{Name: "Jane Roe", Country: "KE", Phone: "254711111111"}
	r.Beneficiary = exchange.Beneficiary{AccountName: "Amina Otieno", BankName: "Equity", AccountNumber: "0123456789", SwiftCode: "EQBLKENA"}
	_, err := storetest.OpenOffRamp(ctx, h.Store, r, by)
	wantFault(t, err, exchange.CodeInsufficientFunds)
	storetest.Deposit(t, h.Store, h.wallet.ID, usdt("10"))
	o, err := storetest.OpenOffRamp(ctx, h.Store, r, by)
	if err != nil {
		t.Fatal(err)
	}
	if o.Network != exchange.Tron || o.FundWalletID != h.wallet.ID || o.RefundAddress != h.wallet.Address || o.PaymentMethod != "bank" ||
		o.PaymentPhone != h.customer.PhoneNumber || o.Beneficiary.AccountNumber != "0123456789" {
		t.Errorf("the remittance is %+v", o)
	}
	wantBooks(t, h.Store)
}

// A deposit reprices a sale only within bounds: an offer's remainder or a quote's amount, the customer's limits, and for a
// closed offer the reservation.
func TestPricesAnewHaveLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*testing.T, *sale)
		amount  string
		want    exchange.DepositVerdict
	}{
		"a closed offer, less":  {closeOffer, "9.5", exchange.TakenRepriced},
		"a closed offer, more":  {closeOffer, "10.5", exchange.TakenMismatch},
		"a deleted offer, less": {deleteOffer, "9.5", exchange.TakenRepriced},
		// Ten count 1500 by the house's valuation of 150, ten and a half 75 more.
		"beyond the day's limit": {func(t *testing.T, x *sale) {
			storetest.Exec(t, x.s, `UPDATE role_limits SET per_day = 1574 WHERE role = 'customer'`)
		}, "10.5", exchange.TakenMismatch},
		"within the day's limit": {func(t *testing.T, x *sale) {
			storetest.Exec(t, x.s, `UPDATE role_limits SET per_day = 1575 WHERE role = 'customer'`)
		}, "10.5", exchange.TakenRepriced},
		"more than the offer has": {sellMost, "500.1", exchange.TakenMismatch},
		"all that the offer has":  {sellMost, "500", exchange.TakenRepriced},
		"more than is paid out":   {widen, "1999", exchange.TakenMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := sold(t)
			c.prepare(t, x)
			got := x.take(t, x.final(t, x.to("tx", usdt(c.amount))), c.want)
			if c.want == exchange.TakenRepriced && !got.Order.Price.Crypto.Equal(usdt(c.amount)) {
				t.Errorf("it is priced for %s", got.Order.Price.Crypto)
			}
			var held string
			err := storetest.Owner(t, x.s).QueryRowContext(t.Context(), `SELECT coalesce(sum(amount), 0)::numeric(20,2)::text FROM holds
				WHERE status = 'held' AND object_id = $1 AND key NOT LIKE '%:crypto'`, x.order.ID).Scan(&held)
			want := got.Order.Price.Vendor.String()
			if c.want == exchange.TakenMismatch {
				want = "0.00"
			}
			if err != nil || held != want {
				t.Errorf("%s shillings are reserved for the order, want %s; %v", held, want, err)
			}
			wantBooks(t, x.s)
		})
	}
}

// widen makes the offer accept any amount.
func widen(t *testing.T, x *sale) {
	t.Helper()
	storetest.Exec(t, x.s, `UPDATE offers SET max_order = 100000 WHERE id = $1`, x.m.Offer.ID)
}

// sellMost leaves the offer 490 USDT besides the sale's ten.
func sellMost(t *testing.T, x *sale) {
	t.Helper()
	widen(t, x)
	for range 3 {
		x.m.Sale(t, x.s, "500")
	}
}

func closeOffer(t *testing.T, x *sale) {
	t.Helper()
	by := storetest.PrincipalOf(x.m.Vendor)
	if _, err := x.s.CloseOffer(t.Context(), store.ViewOf(by, exchange.ActWriteOffers), x.m.Offer.ID, by); err != nil {
		t.Fatal(err)
	}
}

func deleteOffer(t *testing.T, x *sale) {
	t.Helper()
	closeOffer(t, x)
	by := storetest.PrincipalOf(x.m.Vendor)
	if err := x.s.DeleteOffer(t.Context(), store.ViewOf(by, exchange.ActWriteOffers), x.m.Offer.ID, by); err != nil {
		t.Fatal(err)
	}
}

// A sale with a quote accepts less than the quoted amount, but never more.
func TestQuotedSalesPricedAnew(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]exchange.DepositVerdict{"10": exchange.TakenExact, "9.99": exchange.TakenRepriced, "10.01": exchange.TakenMismatch} {
		t.Run(amount, func(t *testing.T) {
			t.Parallel()
			h := openHouse(t)
			if _, err := h.StartDeposits(t.Context(), exchange.Tron, blockOf("a", 100)); err != nil {
				t.Fatal(err)
			}
			o, err := storetest.OpenOffRamp(t.Context(), h.Store, h.request(t, h.promised(t, h.customer, "10")), storetest.PrincipalOf(h.customer))
			if err != nil {
				t.Fatal(err)
			}
			l, err := h.EscrowLease(t.Context(), o.ID)
			if err != nil {
				t.Fatal(err)
			}
			w, err := h.Wallet(t.Context(), store.Everything(), l.WalletID)
			if err != nil {
				t.Fatal(err)
			}
			x := &sale{s: h.Store, order: o, e: w, block: 100}
			x.take(t, x.final(t, x.to("tx", usdt(amount))), want)
			held := map[exchange.DepositVerdict]string{exchange.TakenExact: "1290", exchange.TakenRepriced: "1288.71", exchange.TakenMismatch: "0"}[want]
			wantBalance(t, h.Store, exchange.Owned(exchange.AccFiatBalance, exchange.PlatformTreasury, money.KES), "5000", held)
			wantBooks(t, h.Store)
		})
	}
}
