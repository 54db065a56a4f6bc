package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// A second leg whose transaction was called impossible, and was given up for the refund, shows up on the chain after all: the refund is not
// signed until an officer has decided, and nothing takes the transaction for a payment that is given up.
func TestPayoutsThatComeAfterAllHoldUpTheRefund(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), started(t)
	b := swapDeskIn(t, s)
	o, p := b.paying(t, usdt("100"))
	tx := sign(t, s, p)
	if _, err := s.RecordExpired(ctx, tx.ID, "absent"); err != nil {
		t.Fatal(err)
	}
	b.is(t, o, exchange.SwapPayingOut, exchange.WaitSignature)
	b.waits(t, o, "31")
	out, err := s.RefundSwap(ctx, o.ID)
	if err != nil {
		t.Fatal(err)
	}
	refund := b.payment(t, out.PaymentID)
	wantHold(t, s, refund, exchange.HoldNone)
	finalBlock(t, s, scanOf(blockOf("a", 101), moveOf(tx.TxID, p.FromAddress, p.ToAddress, p.Amount)))
	q := alarmOf(t, s, exchange.QuarantineUnexpected)
	wantHold(t, s, refund, exchange.HoldUnexpected)
	wantFault(t, signing(t, s, refund), exchange.CodeStateConflict)
	_ = adopted(t, s, q.ID, p.ID) // it is known as the payment's own, so nothing changes
	if now := b.payment(t, p.ID); now.Status != exchange.ChainCancelled {
		t.Errorf("the second leg is %s", now.Status)
	}
	wantHold(t, s, refund, exchange.HoldUnexpected)
	settled(t, s, q)
	if err := signing(t, s, refund); err != nil {
		t.Errorf("after it was settled: %v", err)
	}
	wantBooks(t, s)
}

// A second leg that this database does not know of may have been paid: nothing goes back in a database that was put back, or before the watch
// has read the chain, neither by time nor by two officers. A freeze changes nothing.
func TestSwapsGoBackOnlyWhenTheirPayoutIsKnown(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newSwapDesk(t)
	released(t, b.s)
	byTime, _ := b.paying(t, usdt("10"))
	never := b.collected(t, usdt("10"))
	byTwo, p := b.paying(t, usdt("10"))
	if _, err := b.s.ParkChainPayment(ctx, p.ID, "no energy"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.s.StallSwap(ctx, byTwo.ID); err != nil {
		t.Fatal(err)
	}
	c, err := b.s.ProposeSwapResolution(ctx, byTwo.ID, exchange.SwapRefund, "it stands still", b.one)
	if err != nil {
		t.Fatal(err)
	}
	b.waits(t, byTime, "31")
	b.waits(t, never, "31")
	if _, err := b.s.Freeze(ctx, storetest.NewID(t), "checking", b.boss); err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		if _, err := b.s.RefundSwap(ctx, byTime.ID); exchange.CodeOf(err) != exchange.CodeStateConflict {
			t.Errorf("%s: by time: %v", what, err)
		}
		if _, err := b.s.ConfirmChange(ctx, c.ID, "", b.two); exchange.CodeOf(err) != exchange.CodeStateConflict {
			t.Errorf("%s: by two: %v", what, err)
		}
	}
	b.looks(t, "-3 minutes")
	refused("the watch looked long ago")
	b.looks(t, "1 hour")
	storetest.Exec(t, b.s, `UPDATE deposit_looks SET final_head = 1000`)
	refused("the watch lags")
	b.looks(t, "1 hour")
	storetest.Exec(t, b.s, `UPDATE deposit_looks SET resumed_at = now()`)
	refused("the watch has resumed")
	storetest.Exec(t, b.s, `UPDATE deposit_looks SET resumed_at = NULL`)
	storetest.PutBack(t, b.s)
	b.looks(t, "1 hour")
	storetest.Exec(t, b.s, `UPDATE deposit_looks SET resumed_at = NULL`)
	refused("the database was put back")
	if _, err := b.s.RefundSwap(ctx, never.ID); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("put back, without a payment: %v", err)
	}
	b.every(t, "gives back what was put back", moves(never.ID, `status = 'refunding'`), `UPDATE holds SET status = 'released' WHERE id = `+quotedID(never.ReservationID))
	released(t, b.s)
	for _, o := range []exchange.Swap{byTime, never} {
		if out, err := b.s.RefundSwap(ctx, o.ID); err != nil || out.Status != exchange.SwapRefunding {
			t.Errorf("released, it is %s, %v", out.Status, err)
		}
	}
	if _, err := b.s.ConfirmChange(ctx, c.ID, "", b.two); err != nil {
		t.Errorf("released, by two: %v", err)
	}
	b.is(t, byTwo, exchange.SwapRefunding, exchange.WaitSignature)
}

// That a second leg failed is one node's word. Its refund is not given, or signed, before the watch has read the whole time in which the
// transaction could be carried out after all.
func TestRefundsWaitUntilAFailedPayoutIsRead(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newSwapDesk(t)
	fails := func() (exchange.Swap, exchange.ChainPayment) {
		o, p := b.paying(t, usdt("10"))
		if _, err := b.s.RecordFinal(ctx, sign(t, b.s, p).ID, false, 101, "a-101", trx("2"), "REVERT"); err != nil {
			t.Fatal(err)
		}
		b.waits(t, o, "31")
		return o, p
	}
	first, _ := fails()
	_, err := b.s.RefundSwap(ctx, first.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	b.readsOn(t)
	out, err := b.s.RefundSwap(ctx, first.ID)
	if err != nil {
		t.Fatal(err)
	}
	refund := b.payment(t, out.PaymentID)
	wantHold(t, b.s, refund, exchange.HoldNone)
	longer := `UPDATE chain_attempts SET expires_at = now() + interval '7 hours' WHERE payment_id IN (SELECT id FROM chain_payments WHERE object_id = ` + quotedID(first.ID) + `)`
	storetest.Exec(t, b.s, `ALTER TABLE chain_attempts DISABLE TRIGGER USER; `+longer+`; ALTER TABLE chain_attempts ENABLE TRIGGER USER`)
	wantHold(t, b.s, refund, exchange.HoldWatch)
	wantFault(t, signing(t, b.s, refund), exchange.CodeStateConflict)
	b.readsOn(t)
	wantHold(t, b.s, refund, exchange.HoldNone)
	b.final(t, sign(t, b.s, refund))
	b.is(t, first, exchange.SwapRefunded, exchange.WaitNothing)
}

// Of a signature of the second leg and the decision to refund at one moment, one happens.
func TestPayoutsAndRefundsAtOneMoment(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	for range 10 {
		o, p := b.paying(t, usdt("10"))
		b.waits(t, o, "31")
		start, wg := make(chan struct{}), sync.WaitGroup{}
		var signs, refunds error
		wg.Go(func() { <-start; signs = signing(t, b.s, p) })
		wg.Go(func() { <-start; _, refunds = b.s.RefundSwap(t.Context(), o.ID) })
		close(start)
		wg.Wait()
		alive := decides[string](t, b.s, `SELECT string_agg(purpose, ' ') FROM chain_payments WHERE object_id = $1 AND purpose <> 'swap_collect' AND status <> 'cancelled'`, o.ID)
		if (signs == nil) == (refunds == nil) || alive != map[bool]string{true: "swap_payout", false: "swap_refund"}[signs == nil] {
			t.Errorf("alive is %s; signed: %v; refunded: %v", alive, signs, refunds)
		}
	}
	wantBooks(t, b.s)
}

// A second leg that was in a block and is reorganised away is neither refunded nor paid again before it is impossible.
func TestPayoutsThatAreReorganisedAway(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newSwapDesk(t)
	o, p := b.paying(t, usdt("100"))
	tx := sign(t, b.s, p)
	if _, err := b.s.RecordIncluded(ctx, tx.ID, 150, "a-150"); err != nil {
		t.Fatal(err)
	}
	b.is(t, o, exchange.SwapPayingOut, exchange.WaitFinality)
	if _, err := b.s.RecordVanished(ctx, tx.ID); err != nil {
		t.Fatal(err)
	}
	b.is(t, o, exchange.SwapPayingOut, exchange.WaitBroadcast)
	b.waits(t, o, "31")
	_, err := b.s.RefundSwap(ctx, o.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := b.s.StallSwap(ctx, o.ID); err != nil { // it is on its way, and only waited for
		t.Fatal(err)
	}
	b.is(t, o, exchange.SwapPayingOut, exchange.WaitBroadcast)
	_, err = b.s.ProposeSwapResolution(ctx, o.ID, exchange.SwapRefund, "it is gone", b.one)
	wantFault(t, err, exchange.CodeStateConflict)
	b.final(t, tx)
	b.is(t, o, exchange.SwapSyncing, exchange.WaitSync)
	b.wants(t, [2]string{"900", "0"}, [2]string{"100", "0"}, [2]string{"100", "0"}, [2]string{"400", "0"})
}

// A swap whose owner is switched off is not collected, though its first leg was approved. What was collected is paid out all the same.
func TestSwapsOfOwnersWhoAreSwitchedOff(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), started(t)
	b := swapDeskIn(t, s)
	paid, mine := b.collected(t, usdt("10")), b.collected(t, usdt("20"))
	waiting, p := b.collecting(t, usdt("30"))
	off := false
	if _, err := s.UpdateUser(ctx, b.customer.ID, store.UserPatch{IsActive: &off}, storetest.By); err != nil {
		t.Fatal(err)
	}
	wantHold(t, s, p, exchange.HoldInactive)
	wantFault(t, signing(t, s, p), exchange.CodeStateConflict)
	b.waits(t, waiting, "11")
	if _, err := s.ExpireSwap(ctx, waiting.ID); err != nil {
		t.Fatal(err)
	}
	b.is(t, waiting, exchange.SwapExpired, exchange.DetailExpired)
	out, err := s.PayOutSwap(ctx, paid.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.final(t, sign(t, s, b.payment(t, out.PaymentID)))
	b.is(t, paid, exchange.SwapSyncing, exchange.WaitSync)
	b.waits(t, mine, "31")
	if out, err = s.RefundSwap(ctx, mine.ID); err != nil {
		t.Fatal(err)
	}
	b.final(t, sign(t, s, b.payment(t, out.PaymentID)))
	b.is(t, mine, exchange.SwapRefunded, exchange.WaitNothing)
	b.wants(t, [2]string{"990", "0"}, [2]string{"10", "0"}, [2]string{"10", "0"}, [2]string{"490", "0"})
}

// While all that leaves is frozen no leg is signed.
func TestFrozenSwapsSignNothing(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), started(t)
	b := swapDeskIn(t, s)
	_, first := b.collecting(t, usdt("10"))
	_, second := b.paying(t, usdt("10"))
	back := b.collected(t, usdt("10"))
	b.waits(t, back, "31")
	out, err := s.RefundSwap(ctx, back.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Freeze(ctx, storetest.NewID(t), "checking", b.boss); err != nil {
		t.Fatal(err)
	}
	for _, p := range []exchange.ChainPayment{first, second, b.payment(t, out.PaymentID)} {
		wantHold(t, s, p, exchange.HoldFrozen)
		wantFault(t, signing(t, s, p), exchange.CodeStateConflict)
	}
}

// A swap leaves the sums and gives its limits back exactly when nothing of it left: what was collected counts also when it went back.
func TestSwapsLeaveTheSumsWhenNothingLeft(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newSwapDesk(t)
	storetest.Patch(t, b.s, store.LimitPatch{Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleCustomer: {PerDay: kes("100000")}}})
	counts := func(what, want string) {
		t.Helper()
		if got := decides[string](t, b.s, `SELECT trunc(coalesce(sum(value), 0))::text FROM releases WHERE counts_until > now() AND ended_at IS NULL AND purpose = 'swap'`); got != want {
			t.Errorf("%s: %s counts, want %s", what, got, want)
		}
	}
	given := b.open(t, usdt("10"))
	counts("opened", "1500")
	if _, err := storetest.CancelSwap(ctx, b.s, given.ID, b.who); err != nil {
		t.Fatal(err)
	}
	counts("cancelled", "0")
	late, _ := b.collecting(t, usdt("10"))
	b.waits(t, late, "11")
	if _, err := b.s.ExpireSwap(ctx, late.ID); err != nil {
		t.Fatal(err)
	}
	counts("expired", "0")
	failed, p := b.collecting(t, usdt("10"))
	if _, err := b.s.RecordFinal(ctx, sign(t, b.s, p).ID, false, 9, "block", trx("2"), "REVERT"); err != nil {
		t.Fatal(err)
	}
	counts("parked", "1500")
	outlived(t, b.s)
	if _, err := b.s.GiveUpSwap(ctx, failed.ID, b.boss); err != nil {
		t.Fatal(err)
	}
	counts("failed", "0")
	back := b.collected(t, usdt("10"))
	b.waits(t, back, "31")
	out, err := b.s.RefundSwap(ctx, back.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.final(t, sign(t, b.s, b.payment(t, out.PaymentID)))
	b.syncing(t, usdt("20"))
	counts("one refunded and one paid", "4500")
	b.every(t, "takes a refunded one out of the sums", `UPDATE releases SET ended_at = now() WHERE object_id = `+quotedID(back.ID))
}

// No login calls a swap collecting whose first leg is not signed: its price would hold for ever.
func TestTheDatabaseRefusesToHoldAPriceForEver(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	o, _ := b.collecting(t, usdt("10"))
	b.every(t, "calls it collecting", moves(o.ID, `status = 'collecting'`))
}

// A first leg becomes final now, however the clock of the process is set: the second leg has its half hour.
func TestSwapsAreCollectedNow(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := storetest.URL(t)
	b := swapDeskIn(t, storetest.Open(t, url, store.Options{}))
	_, p := b.collecting(t, usdt("10"))
	tx := sign(t, b.s, p)
	slow := storetest.Open(t, url, store.Options{Now: func() time.Time { return time.Now().Add(-time.Hour) }})
	if _, err := slow.RecordFinal(ctx, tx.ID, true, 200, "a-200", trx("1"), "SUCCESS"); err == nil {
		t.Error("it was collected an hour ago")
	}
	b.final(t, tx)
}

// At each state of a swap the books balance and the reserves cover: what was collected is owed to its owner until the second leg, or the
// refund, is final.
func TestReservesOfSwaps(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	covers := func(what, usdt, usdc string) {
		t.Helper()
		day = day.AddDate(0, 0, 1)
		all, err := b.s.WriteReserves(t.Context(), day)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range all {
			want, ok := map[money.Asset]string{money.USDT: usdt, money.USDC: usdc}[l.Asset]
			if ok && !l.Owed.Equal(money.Must(l.Asset, want)) || !l.Owed.Add(l.Equity).Equal(l.Custody.Add(l.Float)) || l.Surplus().Sign() < 0 {
				t.Errorf("%s: of %s %s is owed, want %s, and %s our own, of %s and %s", what, l.Asset, l.Owed, want, l.Equity, l.Custody, l.Float)
			}
		}
		wantBooks(t, b.s)
	}
	covers("before", "1000", "0")
	o, p := b.collecting(t, usdt("100"))
	covers("reserved", "1000", "0")
	tx := sign(t, b.s, p)
	covers("collecting", "1000", "0")
	b.final(t, tx)
	covers("collected", "1000", "0")
	out, err := b.s.PayOutSwap(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	covers("paying out", "1000", "0")
	b.final(t, sign(t, b.s, b.payment(t, out.PaymentID)))
	covers("synchronising", "900", "100")
	if _, err := b.s.SyncSwap(t.Context(), o.ID, b.read("5")); err != nil {
		t.Fatal(err)
	}
	covers("completed", "900", "100")
	back := b.collected(t, usdt("50"))
	b.waits(t, back, "31")
	if out, err = b.s.RefundSwap(t.Context(), back.ID); err != nil {
		t.Fatal(err)
	}
	covers("refunding", "900", "100")
	b.final(t, sign(t, b.s, b.payment(t, out.PaymentID)))
	covers("refunded", "900", "100")
}

// An officer who approves a swap too late approves nothing: it has expired, and all money is free.
func TestSwapsThatAreApprovedTooLate(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newSwapDesk(t)
	storetest.Patch(t, b.s, store.LimitPatch{Rules: rule("100", "1000000")})
	o, alone := b.open(t, usdt("100")), b.open(t, usdt("10"))
	if out, err := b.s.CollectSwap(ctx, o.ID); err != nil || out.StatusDetail != exchange.WaitApproval {
		t.Fatalf("it waits for %s, %v", out.StatusDetail, err)
	}
	b.waits(t, o, "11")
	b.waits(t, alone, "11")
	if out, err := storetest.DecideSwap(ctx, b.s, o, exchange.Approve, b.one); err != nil || out.Status != exchange.SwapExpired || out.PaymentID != uuid.Nil {
		t.Errorf("approved too late, it is %s, %v", out.Status, err)
	}
	if out, err := b.s.CollectSwap(ctx, alone.ID); err != nil || out.Status != exchange.SwapExpired || out.PaymentID != uuid.Nil {
		t.Errorf("collected too late, it is %s, %v", out.Status, err)
	}
	b.wants(t, [2]string{"1000", "0"}, [2]string{"0", "0"}, [2]string{"0", "0"}, [2]string{"500", "0"})
}
