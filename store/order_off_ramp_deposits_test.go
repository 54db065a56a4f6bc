package store_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// sale is a market for crypto, an open order of 10 USDT, and a chain with deposits for it.
type sale struct {
	s     *store.Store
	m     storetest.Market
	order exchange.Order
	e     exchange.Wallet // the order's escrow wallet
	block uint64          // the newest final one
}

// sold opens an order of 10 USDT for 1293 KES.
func sold(t *testing.T) *sale {
	t.Helper()
	s := started(t)
	return soldIn(t, s, storetest.NewSellers(t, s))
}

// soldIn is sold in a market that is there.
func soldIn(t *testing.T, s *store.Store, m storetest.Market) *sale {
	t.Helper()
	o := m.Sale(t, s, "10")
	l, err := s.EscrowLease(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Wallet(t.Context(), store.Everything(), l.WalletID)
	if err != nil {
		t.Fatal(err)
	}
	return &sale{s: s, m: m, order: o, e: w, block: 100}
}

func (x *sale) to(tx string, amount money.Amount) exchange.ChainMovement {
	return moveOf(tx, stranger, x.e.Address, amount)
}

// seen shows movements in the block above the final one, which may still be undone.
func (x *sale) seen(t *testing.T, moved ...exchange.ChainMovement) {
	t.Helper()
	seenBlock(t, x.s, scanOf(blockOf("a", x.block+1), moved...))
}

// final puts movements into the next final block, and returns the rows of the first one's transaction.
func (x *sale) final(t *testing.T, moved ...exchange.ChainMovement) exchange.ChainDeposit {
	t.Helper()
	x.block++
	finalBlock(t, x.s, scanOf(blockOf("a", x.block), moved...))
	return x.row(t, moved[0].TxID)
}

// gone replaces the newest block that was seen.
func (x *sale) gone(t *testing.T) {
	t.Helper()
	if err := x.s.DropSeenBlock(t.Context(), exchange.Tron, blockOf("a", x.block+1)); err != nil {
		t.Fatal(err)
	}
}

func (x *sale) row(t *testing.T, tx string) exchange.ChainDeposit {
	t.Helper()
	all := deposits(t, x.s, tx)
	if len(all) != 1 {
		t.Fatalf("%s is %+v", tx, all)
	}
	return all[0]
}

// expire ends the time in which the sale may still be paid.
func (x *sale) expire(t *testing.T) {
	t.Helper()
	storetest.Exec(t, x.s, `SET session_replication_role = replica; UPDATE orders SET expires_at = created_at WHERE id = '`+x.order.ID.String()+`'; SET session_replication_role = origin`)
}

// take takes a deposit twice and expects a verdict the first time, and the same outcome the second.
func (x *sale) take(t *testing.T, d exchange.ChainDeposit, want exchange.DepositVerdict) exchange.DepositTaken {
	t.Helper()
	if want == exchange.TakenRepriced || want == exchange.TakenMismatch {
		x.expire(t) // before that another amount decides nothing
	}
	first, err := x.s.TakeDeposit(t.Context(), x.order.ID, d.ID)
	if err != nil || first.Verdict != want {
		t.Fatalf("the deposit is taken as %q, want %q; %v", first.Verdict, want, err)
	}
	again, err := x.s.TakeDeposit(t.Context(), x.order.ID, d.ID)
	if err != nil || again.Verdict != exchange.TakenKnown || !sameOrder(first.Order, again.Order) || first.Exception.ID != again.Exception.ID || first.Refund.ID != again.Refund.ID {
		t.Fatalf("taken again it is %+v, want %+v; %v", again, first, err)
	}
	return first
}

func (x *sale) suspense() exchange.AccountRef {
	return exchange.House(exchange.AccSuspense, money.USDT)
}

// wantMoney checks where the crypto is: on the chain, in suspense, and on the escrow wallet with its hold.
func (x *sale) wantMoney(t *testing.T, custodyOf, inSuspense, owedOf, held string) {
	t.Helper()
	wantBalance(t, x.s, custody(x.e), custodyOf, "0")
	wantBalance(t, x.s, x.suspense(), inSuspense, "0")
	wantBalance(t, x.s, owed(x.e, money.USDT), owedOf, held)
	wantBooks(t, x.s)
}

// wantVendor checks the reserved part of the vendor's shillings.
func (x *sale) wantVendor(t *testing.T, held string) {
	t.Helper()
	wantBalance(t, x.s, exchange.Owned(exchange.AccFiatBalance, x.m.Vendor.ID, money.KES), "300000", held)
}

func (x *sale) now(t *testing.T) exchange.Order {
	t.Helper()
	o, err := x.s.Order(t.Context(), store.Everything(), x.order.ID)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func wantOrder(t *testing.T, o exchange.Order, status exchange.OrderStatus, detail, tx string) {
	t.Helper()
	if o.Status != status || o.StatusDetail != detail || o.DepositTxHash != tx {
		t.Errorf("the order is %s (%s) by %q, want %s (%s) by %q", o.Status, o.StatusDetail, o.DepositTxHash, status, detail, tx)
	}
}

// A deposit is shown while it is in a block, removed when the block is, and shown again.
func TestSaleFollowsItsDeposit(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t)
	x.seen(t, x.to("tx", usdt("10")))
	d := x.row(t, "tx")
	for range 2 {
		o, err := x.s.SeeDeposit(ctx, x.order.ID, d.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantOrder(t, o, exchange.OrderConfirming, exchange.WaitDepositFinality, "tx")
	}
	_, err := x.s.LoseDeposit(ctx, x.order.ID, d.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = x.s.TakeDeposit(ctx, x.order.ID, d.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = x.s.CloseOffRamp(ctx, x.order.ID, exchange.DetailExpired, exchange.Asked{})
	wantFault(t, err, exchange.CodeStateConflict)
	x.gone(t)
	_, err = x.s.SeeDeposit(ctx, x.order.ID, d.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	for range 2 {
		o, err := x.s.LoseDeposit(ctx, x.order.ID, d.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantOrder(t, o, exchange.OrderPending, exchange.WaitDeposit, "")
		if !o.DepositAt.IsZero() || o.DepositConfirms != 0 {
			t.Errorf("a deposit that is gone was at %s with %d blocks", o.DepositAt, o.DepositConfirms)
		}
	}
	x.wantMoney(t, "0", "0", "0", "0")
	got := x.take(t, x.final(t, x.to("tx", usdt("10"))), exchange.TakenExact)
	wantOrder(t, got.Order, exchange.OrderProcessing, exchange.WaitScreening, "tx")
	want := []string{"order.opened", "order.confirming", "order.pending", "order.confirming", "order.processing"}
	events := slices.DeleteFunc(eventsOf(t, x.s, x.order.ID), func(name string) bool { return !strings.HasPrefix(name, "order.") })
	if !slices.Equal(events, want) {
		t.Errorf("the events are %v, want %v", events, want)
	}
}

// A sale whose deposit is undone after its time waits for it again: what anybody sends meanwhile decides nothing, past the
// product's code neither, and no process ends that time.
func TestUndoneDepositsLeaveTimeToComeAgain(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t)
	x.seen(t, x.to("tx", usdt("10")))
	if _, err := x.s.SeeDeposit(ctx, x.order.ID, x.row(t, "tx").ID); err != nil {
		t.Fatal(err)
	}
	x.expire(t)
	x.gone(t)
	if _, err := x.s.LoseDeposit(ctx, x.order.ID, x.row(t, "tx").ID); err != nil {
		t.Fatal(err)
	}
	if again := time.Until(x.now(t).DecidedAt()); again < exchange.OrderLife-time.Minute || again > exchange.OrderLife {
		t.Errorf("it waits %s again", again)
	}
	others := x.final(t, x.to("others", usdt("9.5")))
	x.waits(t, others)
	flows := storetest.As(t, x.s, store.RoleFlows)
	if _, err := flows.ExecContext(ctx, `UPDATE orders SET waits_until = created_at WHERE id = $1`, x.order.ID); err != nil {
		t.Fatal(err)
	}
	x.waits(t, others)
	_, err := flows.ExecContext(ctx, `INSERT INTO escrow_claims (id, deposit_id, order_id, wallet_id, kind, asset, amount, hold_id, created_at)
		VALUES (gen_random_uuid(), $1, $2, $3, 'repriced', 'USDT', 9.5, gen_random_uuid(), now())`, others.ID, x.order.ID, x.e.ID)
	if err == nil || !strings.Contains(err.Error(), "did not decide") {
		t.Errorf("the database takes the other amount: %v", err)
	}
	got := x.take(t, x.final(t, x.to("again", usdt("10"))), exchange.TakenExact)
	wantOrder(t, got.Order, exchange.OrderProcessing, exchange.WaitScreening, "again")
}

// When the block of the deposit that is shown is undone and another deposit is there, that one is shown.
func TestAnotherDepositTakesThePlace(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t)
	x.seen(t, x.to("one", usdt("10")))
	one := x.row(t, "one")
	if _, err := x.s.SeeDeposit(ctx, x.order.ID, one.ID); err != nil {
		t.Fatal(err)
	}
	x.gone(t)
	seenBlock(t, x.s, scanOf(blockOf("a", x.block+1), x.to("two", usdt("10"))))
	o, err := x.s.LoseDeposit(ctx, x.order.ID, one.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantOrder(t, o, exchange.OrderConfirming, exchange.WaitDepositFinality, "two")
}

// The exact amount pays the order: the crypto is held on the escrow wallet, and the payout is owed.
func TestExactDepositPaysASale(t *testing.T) {
	t.Parallel()
	x := sold(t)
	d := x.final(t, x.to("tx", usdt("10")))
	x.wantMoney(t, "10", "10", "0", "0")
	got := x.take(t, d, exchange.TakenExact)
	wantOrder(t, got.Order, exchange.OrderProcessing, exchange.WaitScreening, "tx")
	if got.Order.DepositConfirms != 1 || got.Order.DepositAt.IsZero() {
		t.Errorf("the deposit has %d blocks and was at %s", got.Order.DepositConfirms, got.Order.DepositAt)
	}
	x.wantMoney(t, "10", "0", "10", "10")
	x.wantVendor(t, "258710")
	p, err := x.s.OrderPayout(t.Context(), x.order.ID)
	if err != nil || p.Status != exchange.PayoutPending || p.Amount.String() != "1293.00" || p.Phone != x.m.Customer.PhoneNumber {
		t.Errorf("the payout is %+v, %v", p, err)
	}
}

// Another amount that the offer allows reprices the order at its rate, with its reservation.
func TestOtherAmountsPriceASaleAnew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ amount, fiat, vendor, rounding, reserved string }{
		"less": {"9.5", "1228.00", "1228.87", "-0.87", "257481.13"},
		"more": {"12", "1552.00", "1552.26", "-0.26", "257157.74"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := sold(t)
			got := x.take(t, x.final(t, x.to("tx", usdt(c.amount))), exchange.TakenRepriced)
			price := got.Order.Price
			if price.Fiat.String() != c.fiat || price.Vendor.String() != c.vendor || price.Rounding.String() != c.rounding || !price.Crypto.Equal(usdt(c.amount)) ||
				!got.Order.AskedAmount.Equal(usdt("10")) {
				t.Errorf("the price is %+v for %s", price, got.Order.AskedAmount)
			}
			x.wantMoney(t, c.amount, "0", c.amount, c.amount)
			x.wantVendor(t, "258710")
			offer, err := x.s.Offer(t.Context(), store.Everything(), x.m.Offer.ID)
			if err != nil || offer.Reserved.String() != c.reserved {
				t.Errorf("the offer has %s reserved, want %s; %v", offer.Reserved, c.reserved, err)
			}
			if p, err := x.s.OrderPayout(t.Context(), x.order.ID); err != nil || p.Amount.String() != c.fiat {
				t.Errorf("the payout is %+v, %v", p, err)
			}
		})
	}
}

// A paused or suspended offer keeps its agreements, and buys no more at its old price.
func TestPausedOffersBuyNoMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		amount string
		stop   func(*sale) error
		want   exchange.DepositVerdict
	}{
		"more of a paused one":     {"12", (*sale).pause, exchange.TakenMismatch},
		"more of a suspended one":  {"12", (*sale).suspend, exchange.TakenMismatch},
		"more of who is not there": {"12", (*sale).dismiss, exchange.TakenMismatch},
		"less of a paused one":     {"9.5", (*sale).pause, exchange.TakenRepriced},
		"what was agreed":          {"10", (*sale).pause, exchange.TakenExact},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := sold(t)
			if err := c.stop(x); err != nil {
				t.Fatal(err)
			}
			x.take(t, x.final(t, x.to("tx", usdt(c.amount))), c.want)
			wantBooks(t, x.s)
		})
	}
}

// An offer that the market has left keeps its agreements, and buys no more at its old price: neither when the sale expires, nor
// by its seller's word, nor past the product's code.
func TestOffersFarFromTheMarketBuyNoMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		amount string
		market string
		want   exchange.DepositVerdict
	}{
		"more, near the market":     {"12", "161", exchange.TakenRepriced},
		"more, far from the market": {"12", "162", exchange.TakenMismatch},
		"less, far from the market": {"9.5", "162", exchange.TakenRepriced},
		"what was agreed":           {"10", "162", exchange.TakenExact},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := sold(t)
			storetest.Exec(t, x.s, `UPDATE valuations SET rate = $1 WHERE asset = 'USDT'`, c.market)
			x.take(t, x.final(t, x.to("tx", usdt(c.amount))), c.want)
			wantBooks(t, x.s)
		})
	}
	x, _ := otherCame(t, "12")
	storetest.Exec(t, x.s, `UPDATE valuations SET rate = 162 WHERE asset = 'USDT'`)
	_, err := x.decides(t, exchange.IntendSaleAccept, x.now(t), x.seller())
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := storetest.As(t, x.s, store.RoleFlows).ExecContext(t.Context(), `UPDATE orders SET crypto_amount = 12 WHERE id = $1`, x.order.ID); sqlState(err) != "KV059" {
		t.Errorf("the database sells more: %v", err)
	}
}

// A repriced sale is still one transaction: its value may not exceed the limit of one.
func TestRepricedSaleIsOneTransaction(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]exchange.DepositVerdict{"10.5": exchange.TakenRepriced, "12": exchange.TakenMismatch} {
		t.Run(amount, func(t *testing.T) {
			t.Parallel()
			x := sold(t)
			storetest.Exec(t, x.s, `UPDATE role_limits SET per_transaction = 1600 WHERE role = 'customer'`)
			x.take(t, x.final(t, x.to("tx", usdt(amount))), want)
			wantBooks(t, x.s)
		})
	}
}

func (x *sale) pause() error {
	by := storetest.PrincipalOf(x.m.Vendor)
	_, err := x.s.PauseOffer(context.Background(), store.ViewOf(by, exchange.ActWriteOffers), x.m.Offer.ID, by)
	return err
}

// dismiss deactivates the vendor.
func (x *sale) dismiss() error {
	off := false
	_, err := x.s.UpdateUser(context.Background(), x.m.Vendor.ID, store.UserPatch{IsActive: &off}, storetest.By)
	return err
}

func (x *sale) suspend() error {
	_, err := x.s.SuspendOffer(context.Background(), store.Everything(), x.m.Offer.ID, storetest.By)
	return err
}

// A deposit that the offer does not allow ends the order, and all of the crypto is refunded.
func TestUnfitDepositsGoBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		amount string
		kind   exchange.ExceptionKind
	}{"below the offer": {"4.9", exchange.ExcUnder}, "above the offer": {"500.000001", exchange.ExcOver}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := sold(t)
			got := x.take(t, x.final(t, x.to("tx", usdt(c.amount))), exchange.TakenMismatch)
			wantOrder(t, got.Order, exchange.OrderFailed, exchange.DetailMismatch, "tx")
			if got.Exception.Kind != c.kind || got.Exception.Status != exchange.ExcRefunding || !got.Exception.Amount.Equal(usdt(c.amount)) {
				t.Errorf("the exception is %+v", got.Exception)
			}
			if r := got.Refund; r.ID == uuid.Nil || r.Rail != exchange.RefundOnChain || !r.Amount.Equal(usdt(c.amount)) || r.Status != exchange.RefundPending {
				t.Errorf("the refund is %+v", r)
			}
			x.wantMoney(t, c.amount, "0", c.amount, c.amount)
			wantOffer(t, x.s, x.m.Offer.ID, "258710.00", "2000.000000")
			if _, err := x.s.OrderPayout(t.Context(), x.order.ID); exchange.CodeOf(err) != exchange.CodeNotFound {
				t.Errorf("a payout is owed: %v", err)
			}
			_, err := x.s.ReleaseEscrow(t.Context(), x.order.ID)
			wantFault(t, err, exchange.CodeStateConflict)
		})
	}
}

// Another coin, and deposits after the order has its crypto, are set aside and stay in suspense.
func TestSurplusIsSetAside(t *testing.T) {
	t.Parallel()
	x := sold(t)
	usdc := x.final(t, x.to("usdc", money.Must(money.USDC, "10")))
	if got := x.take(t, usdc, exchange.TakenWrongAsset); got.Order.Status != exchange.OrderPending || got.Exception.Kind != exchange.ExcWrongAsset || got.Exception.Status != exchange.ExcOpen {
		t.Errorf("another coin gives %+v", got)
	}
	coin := x.final(t, x.to("trx", trx("5")))
	x.take(t, coin, exchange.TakenWrongAsset)
	x.take(t, x.final(t, x.to("tx", usdt("10"))), exchange.TakenExact)
	more := x.take(t, x.final(t, x.to("again", usdt("10"))), exchange.TakenDuplicate)
	if more.Exception.Kind != exchange.ExcDuplicate || more.Exception.OrderID != x.order.ID || more.Exception.Receipt != "tron:again:0" {
		t.Errorf("the second deposit is the exception %+v", more.Exception)
	}
	x.wantMoney(t, "20", "10", "10", "10")
	wantBalance(t, x.s, exchange.House(exchange.AccSuspense, money.USDC), "10", "0")
}

// Of two deposits in a block the exact one counts, whichever the flow is notified of first.
func TestExactDepositCounts(t *testing.T) {
	t.Parallel()
	x := sold(t)
	first, second := x.to("tx", usdt("9")), x.to("tx", usdt("10"))
	second.Index = 1
	x.block++
	finalBlock(t, x.s, scanOf(blockOf("a", x.block), second, first))
	rows := deposits(t, x.s, "tx")
	slices.SortFunc(rows, func(a, b exchange.ChainDeposit) int { return int(a.Index) - int(b.Index) })
	got, err := x.s.TakeDeposit(t.Context(), x.order.ID, rows[0].ID)
	if err != nil || got.Verdict != exchange.TakenExact || !got.Order.Price.Crypto.Equal(usdt("10")) {
		t.Fatalf("the order is %+v, %v", got, err)
	}
	for _, d := range rows {
		again, err := x.s.TakeDeposit(t.Context(), x.order.ID, d.ID)
		if err != nil || again.Verdict != exchange.TakenKnown {
			t.Errorf("deposit %d is %q, %v", d.Index, again.Verdict, err)
		}
	}
	x.wantMoney(t, "19", "9", "10", "10")
}

// Dust that arrives before the crypto decides nothing, and finally becomes an exception.
func TestDustDecidesNothing(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t)
	dust := x.final(t, x.to("dust", usdt("0.000001")))
	if ids, err := x.s.OffRampDeposits(ctx, x.order.ID); err != nil || len(ids) != 0 {
		t.Errorf("the flow is to look at %v, %v", ids, err)
	}
	d := x.final(t, x.to("tx", usdt("10")))
	if ids, err := x.s.OffRampDeposits(ctx, x.order.ID); err != nil || !slices.Equal(ids, []uuid.UUID{d.ID}) {
		t.Errorf("the flow is to look at %v, %v", ids, err)
	}
	x.take(t, d, exchange.TakenExact)
	if ids, err := x.s.OffRampDeposits(ctx, x.order.ID); err != nil || len(ids) != 0 {
		t.Errorf("the flow is to look at %v, %v", ids, err)
	}
	x.take(t, dust, exchange.TakenDuplicate)
}

// A deposit to the address of an ended order is no longer the order's.
func TestDepositsOfAnOrderThatIsOver(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t)
	if _, err := x.s.CloseOffRamp(ctx, x.order.ID, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	late := x.final(t, x.to("late", usdt("10")))
	got, err := x.s.TakeDeposit(ctx, x.order.ID, late.ID)
	if err != nil || got.Verdict != exchange.TakenKnown || got.Order.Status != exchange.OrderCancelled {
		t.Errorf("late crypto is %+v, %v", got, err)
	}
	x.wantMoney(t, "10", "10", "0", "0")
}

// Another order's deposit is never the order's.
func TestDepositsOfOthers(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t)
	other := x.m.Sale(t, x.s, "10")
	d := x.final(t, x.to("tx", usdt("10")))
	for name, call := range map[string]func() error{
		"take": func() error { _, err := x.s.TakeDeposit(ctx, other.ID, d.ID); return err },
		"see":  func() error { _, err := x.s.SeeDeposit(ctx, other.ID, d.ID); return err },
		"none": func() error { _, err := x.s.TakeDeposit(ctx, storetest.NewID(t), d.ID); return err },
		"lose": func() error { _, err := x.s.LoseDeposit(ctx, x.order.ID, storetest.NewID(t)); return err },
	} {
		if err := call(); exchange.CodeOf(err) != exchange.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An order is closed or paid, never both, whichever comes first.
func TestDepositsRaceWithTheEnd(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t)
	d := x.final(t, x.to("tx", usdt("10")))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := x.s.TakeDeposit(ctx, x.order.ID, d.ID); err != nil {
				t.Errorf("take: %v", err)
			}
		})
		group.Go(func() {
			_, err := x.s.CloseOffRamp(ctx, x.order.ID, exchange.DetailExpired, exchange.Asked{})
			if exchange.CodeOf(err) != exchange.CodeStateConflict {
				t.Errorf("close: %v", err)
			}
		})
	}
	group.Wait()
	wantOrder(t, x.now(t), exchange.OrderProcessing, exchange.WaitScreening, "tx")
	x.wantMoney(t, "10", "0", "10", "10")
}

// No crypto is paid for before the latest screening of its sender accepts it.
func TestSendersAreScreened(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t)
	d := x.final(t, x.to("tx", usdt("10")))
	x.take(t, d, exchange.TakenExact)
	begin := func() error {
		_, err := x.s.BeginPayout(ctx, exchange.OrderObject(x.order.ID), exchange.PaymentAttempt{
			ID: storetest.NewID(t), Direction: exchange.Payout, OrderID: x.order.ID, Provider: "daraja", Status: exchange.AttemptCreated,
			Amount: kes("1293"), Phone: x.m.Customer.PhoneNumber, Reference: "ref", CallbackToken: storetest.NewID(t).String(), WorkflowID: "off-ramp:x",
		})
		return err
	}
	say := func(v ...exchange.Verdict) {
		t.Helper()
		var said []exchange.Screening
		for _, verdict := range v {
			said = append(said, exchange.Screening{Screener: "test", Verdict: verdict})
		}
		if err := x.s.RecordDepositScreening(ctx, d.ID, said); err != nil {
			t.Fatal(err)
		}
	}
	terms, err := x.s.ScreenTerms(ctx, x.order.ID)
	if err != nil || len(terms) != 1 || terms[0].DepositID != d.ID || terms[0].Address != stranger || !terms[0].Amount.Equal(usdt("10")) {
		t.Errorf("to be asked about: %+v, %v", terms, err)
	}
	wantFault(t, begin(), exchange.CodeStateConflict)
	say(exchange.VerdictUnknown)
	wantFault(t, begin(), exchange.CodeStateConflict)
	say(exchange.VerdictHit, exchange.VerdictClear)
	wantFault(t, begin(), exchange.CodeStateConflict)
	say(exchange.VerdictClear)
	if terms, err := x.s.ScreenTerms(ctx, x.order.ID); err != nil || len(terms) != 0 {
		t.Errorf("still to be asked about: %+v, %v", terms, err)
	}
	if err := begin(); err != nil {
		t.Errorf("a cleared payout: %v", err)
	}
}

// A transaction included again in another block may pay another address there. The order that showed it waits again.
func TestDepositThatGoesElsewhere(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t)
	x.seen(t, x.to("tx", usdt("10")))
	d := x.row(t, "tx")
	if _, err := x.s.SeeDeposit(ctx, x.order.ID, d.ID); err != nil {
		t.Fatal(err)
	}
	x.gone(t)
	x.seen(t, moveOf("tx", stranger, x.m.CustomerWallet.Address, usdt("10")))
	_, err := x.s.SeeDeposit(ctx, x.order.ID, d.ID)
	wantFault(t, err, exchange.CodeNotFound)
	o, err := x.s.LoseDeposit(ctx, x.order.ID, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantOrder(t, o, exchange.OrderPending, exchange.WaitDeposit, "")
}

// D6: what anybody may send to a sale's address, however much, decides nothing while the sale may still be paid. The real
// deposit pays it, and the rest goes its own way.
func TestD6OthersMoneyDecidesNothing(t *testing.T) {
	t.Parallel()
	for name, amount := range map[string]string{"dust": "0.01", "less": "9", "more": "12", "much more": "400"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := sold(t)
			x.seen(t, x.to("odd", usdt(amount)))
			odd := x.row(t, "odd")
			if o, err := x.s.SeeDeposit(t.Context(), x.order.ID, odd.ID); err != nil || o.Status != exchange.OrderPending {
				t.Errorf("seen, it makes the sale %s, %v", o.Status, err)
			}
			odd = x.final(t, x.to("odd", usdt(amount)))
			for range 2 {
				got, err := x.s.TakeDeposit(t.Context(), x.order.ID, odd.ID)
				if err != nil || got.Verdict != exchange.TakenWaits || got.Order.Status != exchange.OrderPending || !got.Order.Price.Crypto.Equal(usdt("10")) {
					t.Fatalf("it is taken as %q, and the sale is %+v, %v", got.Verdict, got.Order, err)
				}
			}
			if got := x.take(t, x.final(t, x.to("real", usdt("10"))), exchange.TakenExact); got.Order.Status != exchange.OrderProcessing || got.Order.DepositTxHash != "real" {
				t.Errorf("the real deposit makes the sale %+v", got.Order)
			}
			if got, err := x.s.TakeDeposit(t.Context(), x.order.ID, odd.ID); err != nil || got.Verdict != exchange.TakenDuplicate || got.Exception.ID == uuid.Nil {
				t.Errorf("then it is %q, %v", got.Verdict, err)
			}
		})
	}
}

// D6: the seller may cancel although somebody sent another amount; and when the sale expires, the greatest amount decides,
// unless the exact one is on its way.
func TestD6TheGreatestDecidesAtExpiry(t *testing.T) {
	t.Parallel()
	x := sold(t)
	x.final(t, x.to("dust", usdt("0.01")))
	if o, err := x.s.CloseOffRamp(t.Context(), x.order.ID, exchange.DetailCancelled, exchange.Asked{}); err != nil || o.Status != exchange.OrderCancelled {
		t.Errorf("cancelled it is %s, %v", o.Status, err)
	}
	y := sold(t)
	dust := y.final(t, y.to("dust", usdt("0.01")))
	y.final(t, y.to("less", usdt("9.5")))
	y.expire(t)
	_, err := y.s.CloseOffRamp(t.Context(), y.order.ID, exchange.DetailExpired, exchange.Asked{})
	wantFault(t, err, exchange.CodeStateConflict) // it is decided first
	got, err := y.s.TakeDeposit(t.Context(), y.order.ID, dust.ID)
	if err != nil || got.Verdict != exchange.TakenRepriced || !got.Order.Price.Crypto.Equal(usdt("9.5")) {
		t.Errorf("at expiry the sale is %+v (%q), %v", got.Order.Price, got.Verdict, err)
	}
	z := sold(t)
	dust = z.final(t, z.to("dust", usdt("0.01")))
	z.seen(t, z.to("real", usdt("10")))
	z.expire(t)
	if got, err := z.s.TakeDeposit(t.Context(), z.order.ID, dust.ID); err != nil || got.Verdict != exchange.TakenWaits {
		t.Errorf("the exact amount is on its way, and other money is taken as %q, %v", got.Verdict, err)
	}
}
