package store_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

func (b *swapDesk) payment(t *testing.T, id uuid.UUID) exchange.ChainPayment {
	t.Helper()
	p, err := b.s.ChainPayment(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// final carries a payment out that is signed.
func (b *swapDesk) final(t *testing.T, tx exchange.ChainAttempt) {
	t.Helper()
	for range 2 {
		if _, err := b.s.RecordFinal(t.Context(), tx.ID, true, 200, "a-200", trx("1"), "SUCCESS"); err != nil {
			t.Fatal(err)
		}
	}
}

// collecting is a swap whose first leg is approved.
func (b *swapDesk) collecting(t *testing.T, given money.Amount) (exchange.Swap, exchange.ChainPayment) {
	t.Helper()
	o := b.open(t, given)
	out := twice(t, func(a, b exchange.SwapStanding) bool { return sameSwap(a.Swap, b.Swap) && a.PaymentID == b.PaymentID }, func() (exchange.SwapStanding, error) { return b.s.CollectSwap(t.Context(), o.ID) })
	if out.PaymentID == uuid.Nil {
		t.Fatalf("it waits for %s", out.StatusDetail)
	}
	return out.Swap, b.payment(t, out.PaymentID)
}

func (b *swapDesk) collected(t *testing.T, given money.Amount) exchange.Swap {
	t.Helper()
	o, p := b.collecting(t, given)
	b.final(t, sign(t, b.s, p))
	return b.is(t, o, exchange.SwapCollected, exchange.WaitPayout)
}

// paying is a swap whose second leg is approved.
func (b *swapDesk) paying(t *testing.T, given money.Amount) (exchange.Swap, exchange.ChainPayment) {
	t.Helper()
	o := b.collected(t, given)
	out := twice(t, func(a, b exchange.SwapStanding) bool { return sameSwap(a.Swap, b.Swap) && a.PaymentID == b.PaymentID }, func() (exchange.SwapStanding, error) { return b.s.PayOutSwap(t.Context(), o.ID) })
	return out.Swap, b.payment(t, out.PaymentID)
}

func (b *swapDesk) syncing(t *testing.T, given money.Amount) exchange.Swap {
	t.Helper()
	o, p := b.paying(t, given)
	b.final(t, sign(t, b.s, p))
	return b.is(t, o, exchange.SwapSyncing, exchange.WaitSync)
}

// read are the balances of a swap, of which one differs on the chain.
func (b *swapDesk) read(off string) []exchange.SwapBalance {
	var all []exchange.SwapBalance
	for _, w := range []exchange.Wallet{b.wallet, b.treasury} {
		for _, a := range []money.Asset{money.USDT, money.USDC} {
			all = append(all, exchange.SwapBalance{WalletID: w.ID, Asset: a, Ledger: "5", Chain: "5", Block: 300})
		}
	}
	all[2].Chain = off
	return all
}

// The money of a swap goes to the treasury, is held there, and what was reserved comes back: both legs are booked, and the swap is completed
// when chain and ledger agree.
func TestSwapsMoveBothLegs(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	o, p := b.collecting(t, usdt("100"))
	if p.Purpose != exchange.ForSwapCollect || p.WalletID != b.wallet.ID || p.ToAddress != b.treasury.Address || !p.Amount.Equal(usdt("100")) {
		t.Fatalf("the first leg is %+v", p)
	}
	_, err := b.s.PayOutSwap(t.Context(), o.ID)
	if err != nil || b.is(t, o, exchange.SwapReserved, exchange.WaitSignature).Status != exchange.SwapReserved {
		t.Errorf("paid out before it is collected: %v", err)
	}
	tx := sign(t, b.s, p)
	b.is(t, o, exchange.SwapCollecting, exchange.WaitBroadcast)
	_, err = storetest.CancelSwap(t.Context(), b.s, o.ID, b.who)
	wantFault(t, err, exchange.CodeStateConflict)
	b.final(t, tx)
	o = b.is(t, o, exchange.SwapCollected, exchange.WaitPayout)
	b.wants(t, [2]string{"900", "0"}, [2]string{"0", "0"}, [2]string{"100", "100"}, [2]string{"500", "100"})
	out, err := b.s.PayOutSwap(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	p = b.payment(t, out.PaymentID)
	if p.Purpose != exchange.ForSwapPayout || p.WalletID != b.treasury.ID || p.ToAddress != b.wallet.Address || !p.Amount.Equal(usdc("100")) {
		t.Fatalf("the second leg is %+v", p)
	}
	b.final(t, sign(t, b.s, p))
	b.is(t, o, exchange.SwapSyncing, exchange.WaitSync)
	b.wants(t, [2]string{"900", "0"}, [2]string{"100", "0"}, [2]string{"100", "0"}, [2]string{"400", "0"})
	lagging := b.read("5")
	for i := range lagging {
		lagging[i].Block = 199
	}
	if _, err := b.s.SyncSwap(t.Context(), o.ID, lagging); err != nil {
		t.Fatal(err)
	}
	b.is(t, o, exchange.SwapSyncing, exchange.WaitSync)
	twice(t, sameSwap, func() (exchange.Swap, error) { return b.s.SyncSwap(t.Context(), o.ID, b.read("5")) })
	o = b.is(t, o, exchange.SwapCompleted, exchange.WaitNothing)
	legs, err := b.s.SwapLegs(t.Context(), []exchange.Swap{o})
	if err != nil || len(legs[o.ID]) != 2 || legs[o.ID][0].Role != exchange.LegCollect || legs[o.ID][1].Role != exchange.LegPayout || legs[o.ID][1].TxHash == "" {
		t.Errorf("its legs are %+v, %v", legs, err)
	}
}

// A swap whose balances differ waits for officers: it is completed when they agree after all, or when two accept the difference.
func TestSwapsThatDiffer(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	ctx := t.Context()
	first, second := b.syncing(t, usdt("10")), b.syncing(t, usdt("20"))
	_, err := b.s.SyncSwap(ctx, first.ID, b.read("5")[:3])
	wantFault(t, err, exchange.CodeInternal)
	for _, o := range []exchange.Swap{first, second} {
		twice(t, sameSwap, func() (exchange.Swap, error) { return b.s.SyncSwap(ctx, o.ID, b.read("4.5")) })
		if now := b.is(t, o, exchange.SwapReview, exchange.DetailDiffers); now.Difference == "" {
			t.Error("the difference is not stored")
		}
	}
	if _, err := b.s.SyncSwap(ctx, first.ID, b.read("5")); err != nil {
		t.Fatal(err)
	}
	b.is(t, first, exchange.SwapCompleted, exchange.WaitNothing)
	_, err = b.s.ProposeSwapResolution(ctx, second.ID, exchange.SwapRefund, "why", b.one)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = b.s.RetrySwapPayout(ctx, second.ID, b.one)
	wantFault(t, err, exchange.CodeStateConflict)
	c, err := b.s.ProposeSwapResolution(ctx, second.ID, exchange.SwapAccept, "dust on the chain", b.one)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.s.ConfirmChange(ctx, c.ID, "", b.one)
	wantFault(t, err, exchange.CodeForbidden)
	before := b.is(t, second, exchange.SwapReview, exchange.DetailDiffers)
	moved := b.read("14.50")
	moved[2].Ledger = "15"
	for i := range moved {
		moved[i].Block = 301
	}
	if now, err := b.s.SyncSwap(ctx, second.ID, moved); err != nil || !sameSwap(now, before) || now.Difference != before.Difference {
		t.Errorf("other traffic made it version %d of %d, %s; %v", now.Version, before.Version, now.Difference, err)
	}
	if _, err := b.s.ConfirmChange(ctx, c.ID, "", b.two); err != nil {
		t.Fatal(err)
	}
	if o := b.is(t, second, exchange.SwapCompleted, exchange.DetailAccepted); o.ResolutionID != c.ID || o.Difference == "" {
		t.Errorf("accepted, it is %+v", o)
	}
}

// Officers who accept a difference accept the one that they saw.
func TestAnotherDifferenceIsNotAccepted(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	ctx := t.Context()
	o := b.syncing(t, usdt("10"))
	if _, err := b.s.SyncSwap(ctx, o.ID, b.read("4.5")); err != nil {
		t.Fatal(err)
	}
	c, err := b.s.ProposeSwapResolution(ctx, o.ID, exchange.SwapAccept, "dust", b.one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.s.SyncSwap(ctx, o.ID, b.read("4")); err != nil {
		t.Fatal(err)
	}
	_, err = b.s.ConfirmChange(ctx, c.ID, "", b.two)
	wantFault(t, err, exchange.CodeStateConflict)
}

// What was collected goes back when the second leg can't happen any more, and not before: no earlier than half an hour after the first leg,
// and never while a transaction of the second may be alive.
func TestSwapsAreRefunded(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	ctx := t.Context()
	o, p := b.paying(t, usdt("100"))
	tx := sign(t, b.s, p)
	_, err := b.s.RefundSwap(ctx, o.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	b.waits(t, o, "31")
	_, err = b.s.RefundSwap(ctx, o.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	b.is(t, o, exchange.SwapPayingOut, exchange.WaitBroadcast)
	if _, err := b.s.RecordFinal(ctx, tx.ID, false, 9, "block", trx("2"), "REVERT"); err != nil {
		t.Fatal(err)
	}
	b.is(t, o, exchange.SwapPayingOut, exchange.WaitOperator)
	_, err = b.s.RefundSwap(ctx, o.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	b.readsOn(t)
	out := twice(t, func(a, b exchange.SwapStanding) bool { return sameSwap(a.Swap, b.Swap) && a.PaymentID == b.PaymentID }, func() (exchange.SwapStanding, error) { return b.s.RefundSwap(ctx, o.ID) })
	b.wants(t, [2]string{"900", "0"}, [2]string{"0", "0"}, [2]string{"100", "100"}, [2]string{"500", "0"})
	back := b.payment(t, out.PaymentID)
	if back.Purpose != exchange.ForSwapRefund || back.WalletID != b.treasury.ID || back.ToAddress != b.wallet.Address || !back.Amount.Equal(usdt("100")) {
		t.Fatalf("the refund is %+v", back)
	}
	if gone := b.payment(t, p.ID); gone.Status != exchange.ChainCancelled {
		t.Errorf("the second leg is %s", gone.Status)
	}
	b.final(t, sign(t, b.s, back))
	if now := b.is(t, o, exchange.SwapRefunded, exchange.WaitNothing); now.CompletedAt.IsZero() {
		t.Error("it has no end")
	}
	b.wants(t, [2]string{"1000", "0"}, [2]string{"0", "0"}, [2]string{"0", "0"}, [2]string{"500", "0"})
}

// A swap that was never paid out goes back too, and one that was paid never does.
func TestPaidSwapsAreNotRefunded(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	never := b.collected(t, usdt("10"))
	b.waits(t, never, "31")
	if out, err := b.s.RefundSwap(t.Context(), never.ID); err != nil || out.Status != exchange.SwapRefunding {
		t.Errorf("never paid out, it is %s, %v", out.Status, err)
	}
	paid := b.syncing(t, usdt("20"))
	b.waits(t, paid, "31")
	_, err := b.s.RefundSwap(t.Context(), paid.ID)
	wantFault(t, err, exchange.CodeStateConflict)
}

// A second leg that stands still is tried again by one officer, or given up and refunded by two.
func TestSwapsThatStandStill(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	ctx := t.Context()
	stuck := func(given money.Amount) (exchange.Swap, exchange.ChainPayment) {
		o, p := b.paying(t, given)
		if _, err := b.s.ParkChainPayment(ctx, p.ID, "no energy"); err != nil {
			t.Fatal(err)
		}
		twice(t, sameSwap, func() (exchange.Swap, error) { return b.s.StallSwap(ctx, o.ID) })
		return b.is(t, o, exchange.SwapReview, exchange.DetailStuck), p
	}
	again, p := stuck(usdt("10"))
	out := twice(t, func(a, b exchange.SwapStanding) bool { return sameSwap(a.Swap, b.Swap) && a.PaymentID == b.PaymentID }, func() (exchange.SwapStanding, error) { return b.s.RetrySwapPayout(ctx, again.ID, b.one) })
	if out.Status != exchange.SwapPayingOut || out.PaymentID != p.ID || b.payment(t, p.ID).Status != exchange.ChainApproved {
		t.Errorf("tried again, it is %s with payment %s", out.Status, out.PaymentID)
	}
	b.final(t, sign(t, b.s, b.payment(t, p.ID)))
	b.is(t, again, exchange.SwapSyncing, exchange.WaitSync)

	back, p := stuck(usdt("20"))
	_, err := b.s.ProposeSwapResolution(ctx, back.ID, exchange.SwapAccept, "why", b.one)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = b.s.ProposeSwapResolution(ctx, back.ID, exchange.SwapRefund, "", b.one)
	wantFault(t, err, exchange.CodeInvalid)
	c, err := b.s.ProposeSwapResolution(ctx, back.ID, exchange.SwapRefund, "the network is down", b.one)
	if err == nil {
		_, err = b.s.ConfirmChange(ctx, c.ID, "", b.boss)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.is(t, back, exchange.SwapRefunding, exchange.WaitSignature)
	if gone := b.payment(t, p.ID); gone.Status != exchange.ChainCancelled {
		t.Errorf("the second leg is %s", gone.Status)
	}
	refund, err := b.s.RefundSwap(ctx, back.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.final(t, sign(t, b.s, b.payment(t, refund.PaymentID)))
	b.is(t, back, exchange.SwapRefunded, exchange.WaitNothing)
}

// A first leg that can't be carried out is given up by an operator, and all money is free.
func TestSwapsWhoseFirstLegFails(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	ctx := t.Context()
	o, p := b.collecting(t, usdt("10"))
	tx := sign(t, b.s, p)
	_, err := b.s.GiveUpSwap(ctx, o.ID, b.boss)
	wantFault(t, err, exchange.CodeStateConflict)
	b.waits(t, o, "11")
	if now, err := b.s.ExpireSwap(ctx, o.ID); err != nil || now.Status != exchange.SwapCollecting {
		t.Errorf("signed, it is %s, %v", now.Status, err)
	}
	if _, err := b.s.RecordFinal(ctx, tx.ID, false, 9, "block", trx("2"), "REVERT"); err != nil {
		t.Fatal(err)
	}
	wantUnread(t, b.s, p, func() error {
		_, err := b.s.GiveUpSwap(ctx, o.ID, b.boss)
		return err
	})
	outlived(t, b.s)
	twice(t, sameSwap, func() (exchange.Swap, error) { return b.s.GiveUpSwap(ctx, o.ID, b.boss) })
	b.is(t, o, exchange.SwapFailed, exchange.DetailGivenUp)
	b.wants(t, [2]string{"1000", "0"}, [2]string{"0", "0"}, [2]string{"0", "0"}, [2]string{"500", "0"})
}

// A swap above the officers' values waits for them, with what its owner moved within a day, and never for its requester.
func TestSwapsAskOfficers(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	storetest.Patch(t, b.s, store.LimitPatch{Rules: rule("20000", "1000000")})
	ctx := t.Context()
	first := b.open(t, usdt("100"))
	if out, err := b.s.CollectSwap(ctx, first.ID); err != nil || out.PaymentID == uuid.Nil {
		t.Fatalf("below the value it waits for %s, %v", out.StatusDetail, err)
	}
	second := b.open(t, usdt("100"))
	out, err := b.s.CollectSwap(ctx, second.ID)
	if err != nil || out.PaymentID != uuid.Nil || out.Needed != 1 || out.StatusDetail != exchange.WaitApproval {
		t.Fatalf("together above it, it waits for %s of %d, %v", out.StatusDetail, out.Needed, err)
	}
	if list, err := b.s.PendingSwaps(ctx, b.one.UserID); err != nil || len(list) != 1 || list[0].ID != second.ID {
		t.Errorf("officers are asked about %d, %v", len(list), err)
	}
	if out, err = storetest.DecideSwap(ctx, b.s, second, exchange.Approve, b.one); err != nil || out.PaymentID == uuid.Nil {
		t.Fatalf("approved, it waits for %s, %v", out.StatusDetail, err)
	}
	if p := b.payment(t, out.PaymentID); p.ApprovedBy != "user:"+b.one.UserID.String() {
		t.Errorf("approved by %s", p.ApprovedBy)
	}
	third := b.open(t, usdt("100"))
	if _, err := b.s.CollectSwap(ctx, third.ID); err != nil {
		t.Fatal(err)
	}
	if out, err := storetest.DecideSwap(ctx, b.s, third, exchange.Reject, b.two); err != nil || out.Status != exchange.SwapCancelled || out.StatusDetail != exchange.DetailRejected {
		t.Errorf("rejected, it is %s, %v", out.Status, err)
	}
}

// The treasury swaps in another wallet of its own, with another officer, and who asked for it does not accept what it leaves.
func TestTheTreasurySwapsWithAnotherOfficer(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	other := storetest.TreasuryWallet(t, b.s, exchange.Tron)
	storetest.Deposit(t, b.s, other.ID, usdt("50"))
	storetest.Gas(t, b.s, other.ID, trx("100"))
	b.who, b.wallet = b.one, other
	o := b.open(t, usdt("10"))
	if out, err := b.s.CollectSwap(t.Context(), o.ID); err != nil || out.Needed != 1 {
		t.Fatalf("it needs %d, %v", out.Needed, err)
	}
	b.every(t, "releases the house's own alone", `UPDATE releases SET passed_at = now() WHERE object_id = `+quotedID(o.ID))
	_, err := storetest.DecideSwap(t.Context(), b.s, o, exchange.Approve, b.one)
	wantFault(t, err, exchange.CodeForbidden)
	out, err := storetest.DecideSwap(t.Context(), b.s, o, exchange.Approve, b.two)
	if err != nil || out.PaymentID == uuid.Nil {
		t.Fatalf("approved by another it waits for %s, %v", out.StatusDetail, err)
	}
	b.final(t, sign(t, b.s, b.payment(t, out.PaymentID)))
	if out, err = b.s.PayOutSwap(t.Context(), o.ID); err != nil {
		t.Fatal(err)
	}
	b.final(t, sign(t, b.s, b.payment(t, out.PaymentID)))
	if _, err := b.s.SyncSwap(t.Context(), o.ID, b.read("4.5")); err != nil {
		t.Fatal(err)
	}
	_, err = b.s.ProposeSwapResolution(t.Context(), o.ID, exchange.SwapAccept, "dust", b.one)
	wantFault(t, err, exchange.CodeForbidden)
	c, err := b.s.ProposeSwapResolution(t.Context(), o.ID, exchange.SwapAccept, "dust", b.two)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.s.ConfirmChange(t.Context(), c.ID, "", b.one)
	wantFault(t, err, exchange.CodeForbidden)
}

// A merchant's people swap in the merchant's wallets, and what they move counts together. Another merchant's don't.
func TestMerchantsSwapTogether(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newSwapDesk(t)
	storetest.Patch(t, b.s, store.LimitPatch{Rules: rule("20000", "1000000")})
	master := storetest.User(t, b.s, exchange.RoleVendor)
	agent, stranger := storetest.PrincipalOf(storetest.Subvendor(t, b.s, master)), storetest.PrincipalOf(storetest.Subvendor(t, b.s, storetest.User(t, b.s, exchange.RoleVendor)))
	b.wallet = storetest.WalletOn(t, b.s, master, exchange.Tron)
	storetest.Deposit(t, b.s, b.wallet.ID, usdt("1000"))
	_, err := b.s.OpenSwapQuote(ctx, b.asks(t, usdt("1")), stranger)
	wantFault(t, err, exchange.CodeInvalid)
	b.who = agent
	o := b.open(t, usdt("100"))
	if out, err := b.s.CollectSwap(ctx, o.ID); err != nil || out.PaymentID == uuid.Nil || o.VendorID != master.ID || o.Payer() != master.ID || o.RequestedBy != agent.UserID {
		t.Fatalf("the agent's is %+v, %v", out, err)
	}
	b.who = storetest.PrincipalOf(master)
	if out, err := b.s.CollectSwap(ctx, b.open(t, usdt("100")).ID); err != nil || out.PaymentID != uuid.Nil || out.Needed != 1 {
		t.Errorf("with the agent's, the master's needs %d, %v", out.Needed, err)
	}
	for who, n := range map[exchange.Principal]int{b.who: 2, stranger: 0} {
		if _, total, err := b.s.Swaps(ctx, store.ViewOf(who, exchange.ActReadTransfers), store.SwapFilter{}, onePage); err != nil || total != n {
			t.Errorf("the %s sees %d swaps, %v", who.Role, total, err)
		}
	}
}

// What the treasury has is shown with its marks, which two officers agree on. An event tells once when it is too little, and when it is enough.
func TestInventoryOfSwaps(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	ctx := t.Context()
	b.open(t, usdt("100"))
	marks := exchange.SwapMarks{ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDC, Low: usdc("450"), High: usdc("600")}
	c, err := b.s.ProposeSwapMarks(ctx, marks, b.one)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.s.ConfirmChange(ctx, c.ID, "", b.one)
	wantFault(t, err, exchange.CodeForbidden)
	if low, err := b.s.WatchSwapInventory(ctx); err != nil || len(low) != 0 {
		t.Errorf("without marks %d are low, %v", len(low), err)
	}
	if _, err := b.s.ConfirmChange(ctx, c.ID, "", b.two); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if low, err := b.s.WatchSwapInventory(ctx); err != nil || len(low) != 1 || low[0].Asset != money.USDC || low[0].Move().String() != "200.000000" {
			t.Errorf("low are %+v, %v", low, err)
		}
	}
	all, err := b.s.SwapInventory(ctx)
	if err != nil || len(all) != 2 || all[0].Posted.String() != "500.000000" || all[0].Held.String() != "100.000000" || all[0].Available.String() != "400.000000" || all[0].LowSince.IsZero() || all[1].Marked() {
		t.Errorf("the inventory is %+v, %v", all, err)
	}
	storetest.Deposit(t, b.s, b.treasury.ID, usdc("100"))
	for range 2 {
		if low, err := b.s.WatchSwapInventory(ctx); err != nil || len(low) != 0 {
			t.Errorf("low are %+v, %v", low, err)
		}
	}
	var events string
	if err := storetest.Owner(t, b.s).QueryRowContext(ctx, `SELECT string_agg(type, ' ' ORDER BY cursor) FROM events WHERE object_type = 'swap_marks'`).Scan(&events); err != nil ||
		events != "swap_marks.changed swap_marks.low swap_marks.refilled" {
		t.Errorf("the events are %q, %v", events, err)
	}
	marks.Low = usdc("700")
	_, err = b.s.ProposeSwapMarks(ctx, marks, b.one)
	wantFault(t, err, exchange.CodeInvalid)
}
