package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// treasurySale opens a sale of 10 USDT to the house, at the price of a quote.
func treasurySale(t *testing.T) (*sale, exchange.Wallet) {
	t.Helper()
	return treasurySaleIn(t, started(t))
}

func treasurySaleIn(t *testing.T, s *store.Store) (*sale, exchange.Wallet) {
	t.Helper()
	ctx := t.Context()
	m := storetest.Market{Vendor: exchange.User{ID: exchange.PlatformTreasury}, Customer: storetest.User(t, s, exchange.RoleCustomer)}
	storetest.EscrowPool(t, s, exchange.Tron, 2)
	house := storetest.TreasuryWallet(t, s, exchange.Tron)
	storetest.Shillings(t, s, exchange.PlatformTreasury, kes("300000"))
	storetest.Float(t, s, kes("1000000"))
	storetest.AgreeValuations(t, s)
	storetest.Rate(t, s, store.RateEntry{Base: money.USDT, Bid: decimal.RequireFromString("129.355"), Ask: decimal.RequireFromString("130"), Life: time.Hour})
	by := storetest.PrincipalOf(m.Customer)
	q, err := s.OpenQuote(ctx, store.QuoteRequest{ID: storetest.NewID(t), Purpose: exchange.QuoteForSale, Side: exchange.QuoteSell, Amount: usdt("10")}, by)
	if err != nil {
		t.Fatal(err)
	}
	o, err := storetest.OpenOffRamp(ctx, s, exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: m.Customer.ID, Type: exchange.OffRampSell, Subtype: exchange.TreasuryOffRamp, QuoteID: q.ID,
		Network: exchange.Tron, Crypto: usdt("10"),
	}, by)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.EscrowLease(ctx, o.ID)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Wallet(ctx, store.Everything(), l.WalletID)
	if err != nil {
		t.Fatal(err)
	}
	return &sale{s: s, m: m, order: o, e: e, block: 100}, house
}

// heldFor counts the remaining reservations of an order.
func heldFor(t *testing.T, x *sale) int {
	t.Helper()
	var n int
	err := storetest.Owner(t, x.s).QueryRowContext(t.Context(), `SELECT count(*) FROM holds WHERE status = 'held' AND object_type = 'order' AND object_id = $1`, x.order.ID).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// For every kind of buyer, an ended sale has moved the shillings to the payee and the crypto to the buyer, and nothing
// else.
func TestSalesEndWithEverythingInItsPlace(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (*sale, exchange.Wallet){
		"to a vendor":  func(t *testing.T) (*sale, exchange.Wallet) { t.Helper(); x := sold(t); return x, x.m.VendorWallet },
		"to the house": treasurySale,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, buyer := open(t)
			ctx := t.Context()
			account := func(ref exchange.AccountRef) func(want string) {
				a, err := x.s.Account(ctx, ref)
				if err != nil && exchange.CodeOf(err) != exchange.CodeNotFound {
					t.Fatal(err)
				}
				return func(want string) {
					t.Helper()
					now, err := x.s.Account(ctx, ref)
					if err != nil {
						t.Fatal(err)
					}
					if was := a.Posted; was.Asset() == "" && now.Posted.String() != want || was.Asset() != "" && now.Posted.Sub(was).String() != want {
						t.Errorf("%s moved from %s to %s, want %s", ref.Code(), was, now.Posted, want)
					}
				}
			}
			vendor := account(exchange.Owned(exchange.AccFiatBalance, x.m.Vendor.ID, money.KES))
			float := account(exchange.House(exchange.AccMomoPayout, money.KES))
			charges := account(exchange.House(exchange.AccMomoFees, money.KES))
			rounding := account(exchange.House(exchange.AccRounding, money.KES))
			bought := account(owed(buyer, money.USDT))
			d := x.final(t, x.to("tx", usdt("10")))
			x.order = x.take(t, d, exchange.TakenExact).Order
			if err := x.s.RecordDepositScreening(ctx, d.ID, []exchange.Screening{{Screener: "test", Verdict: exchange.VerdictClear}}); err != nil {
				t.Fatal(err)
			}
			x.paysOut(t)
			p, err := x.s.ApproveSweep(ctx, x.order.ID)
			if err != nil {
				t.Fatal(err)
			}
			x.carriedOut(t, p)
			if _, err := x.s.ReleaseEscrow(ctx, x.order.ID); err != nil {
				t.Fatal(err)
			}
			vendor("-1293.55")
			rounding("0.55")
			charges("23.00")
			float("-1316.00")
			bought("10.000000")
			x.wantMoney(t, "0", "0", "0", "0")
			o := x.now(t)
			if o.Status != exchange.OrderCompleted || o.MomoReceipt == "" || heldFor(t, x) != 0 {
				t.Errorf("the order is %s by %q with %d holds", o.Status, o.MomoReceipt, heldFor(t, x))
			}
		})
	}
}

// A quote is for an amount: less is priced by its rate, more is refunded.
func TestSalesToTheHouseByAnotherAmount(t *testing.T) {
	t.Parallel()
	less, _ := treasurySale(t)
	got := less.take(t, less.final(t, less.to("tx", usdt("9.5"))), exchange.TakenRepriced)
	if got.Order.Price.Fiat.String() != "1228.00" {
		t.Errorf("9.5 USDT bring %s", got.Order.Price.Fiat)
	}
	less.wantMoney(t, "9.5", "0", "9.5", "9.5")
	more, _ := treasurySale(t)
	got = more.take(t, more.final(t, more.to("tx", usdt("10.5"))), exchange.TakenMismatch)
	if got.Order.Status != exchange.OrderFailed || heldFor(t, more) != 1 {
		t.Errorf("more than the quote leaves the order %s with %d holds", got.Order.Status, heldFor(t, more))
	}
	more.wantMoney(t, "10.5", "0", "10.5", "10.5")
}

// A sale funded from our wallet takes no deposit: money that also arrives at its address is set aside, before and
// after.
func TestDepositsBesideAFunding(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), funded(t)
	x.seen(t, x.to("tx", usdt("10")))
	if o, err := x.s.SeeDeposit(ctx, x.order.ID, x.row(t, "tx").ID); err != nil || o.Status != exchange.OrderPending {
		t.Errorf("the order is %s, %v", o.Status, err)
	}
	got := x.take(t, x.final(t, x.to("tx", usdt("10"))), exchange.TakenDuplicate)
	if got.Order.Status != exchange.OrderPending || got.Exception.Kind != exchange.ExcDuplicate {
		t.Errorf("the deposit gives %+v", got)
	}
	done := x.carriedOut(t, x.funding(t))
	own := x.final(t, moveOf(done.TxID, x.m.CustomerWallet.Address, x.e.Address, usdt("10")))
	due, err := x.s.DueWakeups(ctx, exchange.Tron)
	if err != nil || own.Kind != exchange.DepositOwn || slices.ContainsFunc(due, func(u exchange.DepositWakeup) bool { return u.DepositID == own.ID }) {
		t.Errorf("our own payment is %s and wakes %+v, %v", own.Kind, due, err)
	}
	if o := x.now(t); o.Status != exchange.OrderProcessing || !o.Price.Crypto.Equal(usdt("10")) {
		t.Errorf("the order is %s for %s", o.Status, o.Price.Crypto)
	}
	x.wantMoney(t, "20", "10", "10", "10")
}
