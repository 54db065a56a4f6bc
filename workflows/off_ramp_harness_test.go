package workflows_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// saleHarness is a harness with one sale of 10 USDT, whose crypto comes from outside to an escrow address.
type saleHarness struct {
	*harness
	screener *screener
	final    exchange.ChainBlock // the newest final block
	tip      exchange.ChainBlock // one above it that may be undone; zero when there is none
	blocks   int
	denied   uuid.UUID // of the depositor on the deny list
	other    uuid.UUID // another sale
}

const (
	depositor = "Tdepositor000000000000000000000000"
	homeward  = "Thome00000000000000000000000000000" // where the customer wants its crypto back
	elsewhere = "Telsewhere000000000000000000000000" // an address that an officer gives
)

func newSale(t testing.TB) *saleHarness {
	t.Helper()
	w := &saleHarness{harness: newStage(t, exchange.Tron), screener: &screener{}}
	// The database compares the age of refused payouts with its own clock.
	w.startAt(time.Date(2025, 11, 21, 9, 0, 0, 0, time.UTC))
	w.final = exchange.ChainBlock{Number: watchedTo, ID: "start", Time: w.start}
	if _, err := w.store.StartDeposits(t.Context(), exchange.Tron, w.final); err != nil {
		t.Fatal(err)
	}
	w.market = storetest.NewSellers(t, w.store.Store)
	w.fuelPool()
	w.request = exchange.OrderRequest{
		ID: uuid.MustParse("0192f0a0-0000-7000-8000-000000000001"), CustomerID: w.market.Customer.ID, OfferID: w.market.Offer.ID,
		Type: exchange.OffRampSell, Crypto: crypto("10"), ExpiresAt: w.request.ExpiresAt, RefundAddress: homeward,
		Seen: exchange.SeenOffer{Network: exchange.Tron, Asset: money.USDT, MerchantID: w.market.Vendor.ID},
	}
	w.signs.order, w.signs.shillings = &w.request, saleOf10
	w.payouts(pays)
	w.env.RegisterWorkflow(workflows.OffRamp)
	w.env.RegisterActivity(&activities.OffRamps{Store: w.store, Screener: w.screener, Provider: "daraja"})
	w.env.RegisterActivity(&activities.Escrow{Store: w.store})
	w.env.RegisterActivity(&activities.Sweeps{Store: w.store})
	w.env.RegisterActivity(&activities.ChainRefunds{Store: w.store})
	w.env.RegisterActivity(&activities.Bank{Store: w.store})
	w.env.RegisterActivity(&activities.Approvals{Store: w.store})
	return w
}

// startAt has the flow start at a time.
func (w *saleHarness) startAt(at time.Time) {
	w.start, w.request.ExpiresAt = at, at.Add(exchange.OffRampLife)
	w.env.SetStartTime(at)
}

// crypto returns an amount of USDT.
func crypto(amount string) money.Amount { return money.Must(money.USDT, amount) }

// fuelPool gives every address of the pool coins for network fees.
func (w *saleHarness) fuelPool() {
	pool, _, err := w.store.EscrowAddresses(w.t.Context(), store.EscrowFilter{}, everything)
	coins, all := money.Must(money.TRX, "5"), money.Zero(money.TRX)
	var lines []exchange.Line
	for _, a := range pool {
		lines, all = append(lines, exchange.Debit(exchange.Owned(exchange.AccCustody, a.ID, money.TRX), coins)), all.Add(coins)
	}
	lines = append(lines, exchange.Credit(exchange.House(exchange.AccCapital, money.TRX), all))
	if err == nil {
		err = w.store.Post(w.t.Context(), exchange.Posting{Entries: []exchange.Entry{{Key: "test:" + uuid.NewString(), Kind: "seed.gas", Lines: lines}}})
	}
	if err != nil {
		w.t.Errorf("coins for network fees: %v", err)
	}
}

// payouts sets what the operator does with one payout after the other; the last one repeats.
func (w *saleHarness) payouts(plans ...payer) {
	w.operator.script = func(_ exchange.PaymentAttempt, n int) payer { return pick(plans, n, pays) }
}

// refuses is a payout that the operator reports as refused with a code.
func refuses(code string) payer { return payer{code: code, after: 5 * time.Second} }

// verdicts sets what the screening service answers; the last one repeats.
func (w *saleHarness) verdicts(all ...exchange.Verdict) {
	answers := make([]answer, len(all))
	for i, v := range all {
		answers[i] = answer{verdict: v}
	}
	w.screener.replies(answers...)
}

// record records a block with movements, which is final or may be undone.
func (w *saleHarness) record(final bool, moved ...exchange.ChainMovement) {
	b := w.tip
	if b.ID == "" {
		w.blocks++
		b = exchange.ChainBlock{Number: w.final.Number + 1, ID: fmt.Sprintf("block-%d", w.blocks), Parent: w.final.ID, Time: w.env.Now()}
	}
	scan := exchange.BlockScan{Network: exchange.Tron, Block: b, Movements: moved, Minimum: map[money.Asset]money.Amount{money.USDT: crypto("0.01")}}
	var err error
	if final {
		_, err = w.store.RecordFinalBlock(w.t.Context(), scan)
		w.final, w.tip = b, exchange.ChainBlock{}
	} else {
		_, err = w.store.RecordSeenBlock(w.t.Context(), scan)
		w.tip = b
	}
	if err != nil {
		w.t.Errorf("block %d: %v", b.Number, err)
	}
}

// undo replaces the block that may be undone by none.
func (w *saleHarness) undo() {
	if err := w.store.DropSeenBlock(w.t.Context(), exchange.Tron, w.tip); err != nil {
		w.t.Error(err)
	}
	w.tip = exchange.ChainBlock{}
}

func txOf(n int) string { return fmt.Sprintf("deposit-%d", n) }

// comes moves the n-th deposit to a state, and signals the flow as the deposit watch does unless the signal is lost.
func (w *saleHarness) comes(n int, status exchange.ChainDepositStatus, amount money.Amount, notified bool) func() {
	return func() {
		if status == exchange.DepositOrphaned {
			w.undo()
		} else {
			w.record(status == exchange.DepositFinal, exchange.ChainMovement{TxID: txOf(n), From: depositor, To: w.order().EscrowAddress, Amount: amount})
		}
		w.wake(notified)
	}
}

// wake sends the signals about deposits that are due, or loses them.
func (w *saleHarness) wake(notified bool) {
	due, err := w.store.DueWakeups(w.t.Context(), exchange.Tron)
	var ids []uuid.UUID
	for _, d := range due {
		if ids = append(ids, d.ID); notified && d.WorkflowID == workflows.OffRampID(w.request.ID) {
			w.env.SignalWorkflow(workflows.SignalDeposit, workflows.DepositRef{DepositID: d.DepositID})
		}
	}
	if err == nil {
		err = w.store.RecordWoken(w.t.Context(), ids)
	}
	if err != nil || len(ids) == 0 {
		w.t.Errorf("%d signals are due, %v", len(ids), err)
	}
}

// deposit makes crypto seen after the given time and final a minute later.
func (w *saleHarness) deposit(after time.Duration, n int, amount money.Amount) {
	w.at(after, w.comes(n, exchange.DepositSeen, amount, true))
	w.at(after+time.Minute, w.comes(n, exchange.DepositFinal, amount, true))
}

// deny puts the depositor on the deny list.
func (w *saleHarness) deny() {
	w.denied = uuid.New()
	d := exchange.DeniedAddress{ID: w.denied, Network: exchange.Tron, Address: depositor, Reason: "why"}
	if _, err := w.store.Deny(w.t.Context(), d, w.officer); err != nil {
		w.t.Error(err)
	}
}

// undeny takes the depositor off the deny list.
func (w *saleHarness) undeny() {
	admin := storetest.PrincipalOf(storetest.User(w.t, w.store.Store, exchange.RoleAdmin))
	if err := storetest.Agreed(w.t, w.store.Store)(w.store.ProposeUndeny(w.t.Context(), w.denied, admin)); err != nil {
		w.t.Error(err)
	}
}

// tell writes a command as the API does and sends it to the flow. Its note is the receipt that our operator finds at the
// mobile money operator.
func (w *saleHarness) tell(verb string) func() {
	return func() {
		note := "UKLMANUAL1"
		if paid := w.paidOut(); len(paid) > 0 {
			note = paid[0].receipt
		}
		w.notifyFlow(w.decreeWith(activities.ObjectOrder, w.request.ID, verb, note), verb)
	}
}

// says has the seller decide about the crypto of another amount that the order shows now.
func (w *saleHarness) says(update string) func() {
	kind := exchange.IntendSaleAccept
	if update == workflows.UpdateReturnDeposit {
		kind = exchange.IntendSaleReturn
	}
	return func() {
		o := w.order()
		word := exchange.DepositWord{DepositID: o.Other.ID, Digest: o.OtherDigest()}
		if word.DepositID == uuid.Nil {
			word.DepositID = uuid.New()
		}
		w.env.UpdateWorkflow(update, update, w.answer(update), w.intends(kind, uuid.New(), w.request.ID, word.Terms(), w.customer()))
	}
}

func (w *saleHarness) cancel() {
	w.env.UpdateWorkflow(workflows.UpdateCancel, "cancel", w.answer("cancel"), w.asks(exchange.IntendSaleCancel))
}

// floated sends the signal that there is more float, or that the breaker was closed.
func (w *saleHarness) floated() { w.env.SignalWorkflow(workflows.SignalFloat, nil) }

// claim has a source claim that a payout recorded as refused was made, or the operator deny it since.
func (w *saleHarness) claim(made bool) func() {
	return func() {
		if err := w.store.DoubtPayout(w.t.Context(), exchange.OrderObject(w.request.ID), made); err != nil {
			w.t.Error(err)
		}
	}
}

// names has the customer set the address that its crypto goes back to.
func (w *saleHarness) names() {
	by := storetest.PrincipalOf(w.market.Customer)
	if _, err := w.store.SetRefundAddress(w.t.Context(), store.Everything(), w.request.ID, homeward, nil, by); err != nil {
		w.t.Error(err)
	}
}

// agree has another officer approve the crypto refund, as the API does.
func (w *saleHarness) agree(name string) func() {
	return func() {
		for _, r := range w.refunds() {
			if r.Status == exchange.RefundPending || r.Status == exchange.RefundNeedsReview {
				w.env.UpdateWorkflow(workflows.UpdateApprove, name, w.answer(name), workflows.ApprovalRef{Token: w.ticket(r)})
			}
		}
	}
}

// ticket gives a new officer the right to approve a crypto refund.
func (w *saleHarness) ticket(r exchange.Refund) string {
	token, who, now := uuid.NewString(), storetest.User(w.t, w.store.Store, exchange.RoleTreasury), w.env.Now()
	_, err := w.store.IssueRefundTicket(w.t.Context(), exchange.ApprovalTicket{
		ID: uuid.New(), OfficerID: who.ID, ObjectType: exchange.ApproveRefund, ObjectID: r.ID, Action: exchange.Approve, Amount: r.Amount, Digest: r.Digest,
		Channel: exchange.ChannelAPI, TokenHash: sha256.Sum256([]byte(token)), CreatedAt: now, ExpiresAt: now.Add(exchange.ApprovalTokenTTL),
	}, storetest.PrincipalOf(who))
	if err != nil {
		w.t.Errorf("a token for the refund: %v", err)
	}
	return token
}

// ends stops a scenario that never ends.
func (w *saleHarness) ends() {
	w.at(30*24*time.Hour, func() {
		w.t.Fatalf("it never ends: the order is %s (%s), the flows were parked with %v", w.order().Status, w.order().StatusDetail, w.signs.reasons)
	})
}

// run runs the order's flow until it ends.
func (w *saleHarness) run(t checker) {
	t.Helper()
	w.ends()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.OffRampID(w.request.ID), TaskQueue: workflows.QueueFlows})
	w.at(0, func() { w.env.UpdateWorkflow(workflows.UpdateOpen, w.request.ID.String(), w.answer("open")) })
	w.shows(workflows.OffRampAttributes(w.request))
	w.env.ExecuteWorkflow(workflows.OffRamp, workflows.OffRampInput{IntentID: w.asksForOrder(exchange.IntendSale)})
	if !w.env.IsWorkflowCompleted() {
		t.Fatal("the flow did not end")
	}
	o := w.order()
	exhausted := code(w.answers["open"]) == exchange.CodeEscrowExhausted
	if err := w.env.GetWorkflowError(); exhausted != (code(err) == exchange.CodeEscrowExhausted) || err != nil && o.ID != uuid.Nil {
		t.Fatalf("the flow failed: %v", err) // it must fail only for want of an address: the request may then be repeated
	}
	if exhausted {
		return
	}
	var r workflows.OffRampResult
	if err := w.env.GetWorkflowResult(&r); err != nil || r.OrderID != w.request.ID || r.Status != o.Status {
		t.Errorf("the flow ended with %+v, %v; the order is %s", r, err, o.Status)
	}
}

// paidOut is what the operator's own book holds for the order.
func (w *saleHarness) paidOut() []moved { return w.operator.paidOut(w.request.ID) }

// sent lists the payments for a purpose that the network's own book holds.
func (n *network) sent(purpose exchange.ChainPurpose) (list []exchange.ChainPayment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.txs {
		if e.payment.Purpose == purpose && !e.included.IsZero() && !e.outcome.reverts && !e.outcome.astray {
			list = append(list, e.payment)
		}
	}
	return list
}

// claims are the deposits that the order took or set aside, by their number.
func (w *saleHarness) claims() []exchange.EscrowClaim {
	all, err := w.store.EscrowClaims(w.t.Context(), w.request.ID)
	if err != nil {
		w.t.Error(err)
	}
	return all
}

// deposits reads the rows of the n-th deposit.
func (w *saleHarness) deposits(n int) []exchange.ChainDeposit {
	rows, _, err := w.store.ListChainDeposits(w.t.Context(), store.ChainDepositFilter{TxID: txOf(n)}, everything)
	if err != nil {
		w.t.Error(err)
	}
	return rows
}

// claimed returns how the n-th deposit was taken, and whether it is final.
func (w *saleHarness) claimed(n int) (kind exchange.ClaimKind, final bool) {
	for _, d := range w.deposits(n) {
		final = d.Status == exchange.DepositFinal
		for _, c := range w.claims() {
			if c.DepositID == d.ID {
				kind = c.Kind
			}
		}
	}
	return kind, final
}

// sound checks what must hold after every scenario, against the books of the operator and the network.
func (w *saleHarness) sound(t checker) {
	t.Helper()
	o := w.order()
	if o.ID == uuid.Nil {
		return
	}
	paying := 0
	for _, c := range w.claims() {
		if c.Kind.Pays() {
			paying++
		}
	}
	paid, swept, back := len(w.paidOut()), w.chain.sent(exchange.ForSweep), w.chain.sent(exchange.ForRefund)
	if w.request.PayoutMethod == exchange.PaymentMethodBank && o.Status == exchange.OrderCompleted {
		paid++
	}
	switch {
	case paid > 1 || len(swept) > 1 || len(back) > 1:
		t.Errorf("paid %d times, swept %d times, given back %d times", paid, len(swept), len(back))
	case paid > 0 && (paying != 1 || len(back) > 0):
		t.Errorf("paid out for %d deposits, of which %d went back", paying, len(back))
	case len(swept) != paid:
		t.Errorf("swept %d times, paid %d times", len(swept), paid)
	case o.Status == exchange.OrderFailed && len(back)+len(swept) != 1:
		t.Error("the order failed and its crypto did not go back")
	}
	for n := 1; n <= 2; n++ {
		if kind, final := w.claimed(n); final != (kind != "") {
			t.Errorf("the deposit %d is final: %t, and taken as %q", n, final, kind)
		}
	}
	w.booked(t, o, paid, swept, back)
	w.tried(t)
}

// booked checks the ledger and the escrow address of an order that has ended.
func (w *saleHarness) booked(t checker, o exchange.Order, paid int, swept, back []exchange.ChainPayment) {
	t.Helper()
	lease, err := w.store.EscrowLease(w.t.Context(), o.ID)
	if err != nil || lease.EndedAt.IsZero() {
		t.Errorf("the address was not given back: %+v, %v", lease, err)
	}
	if left := w.balance(exchange.Owned(exchange.AccWalletBalance, lease.WalletID, money.USDT)); left.Sign() != 0 {
		t.Errorf("%s is left on the escrow address", left)
	}
	bought, earned := crypto("0"), money.Must(money.KES, "300000")
	if paid > 0 {
		bought, earned = o.Price.Crypto, earned.Sub(o.Price.Vendor)
	}
	if has := w.balance(exchange.Owned(exchange.AccWalletBalance, w.market.VendorWallet.ID, money.USDT)); !has.Equal(bought) {
		t.Errorf("the vendor has %s USDT, want %s", has, bought)
	}
	if has := w.balance(exchange.Owned(exchange.AccFiatBalance, w.market.Vendor.ID, money.KES)); w.other == uuid.Nil && !has.Equal(earned) {
		t.Errorf("the vendor has %s KES, want %s", has, earned)
	}
	for _, p := range swept {
		if p.ToAddress != w.market.VendorWallet.Address || !p.Amount.Equal(o.Price.Crypto) {
			t.Errorf("the sweep brought %s to %s", p.Amount, p.ToAddress)
		}
	}
	for _, p := range back {
		if p.ToAddress != w.order().RefundAddress && p.ToAddress != elsewhere {
			t.Errorf("%s went back to %s", p.Amount, p.ToAddress)
		}
	}
}

// tried checks that every payout was sent once, under the ids of tries without a gap.
func (w *saleHarness) tried(t checker) {
	t.Helper()
	all, err := w.store.Payouts(w.t.Context(), w.request.ID)
	if err != nil {
		t.Error(err)
	}
	for _, a := range all {
		if !slices.ContainsFunc(all, func(b exchange.PaymentAttempt) bool { return b.ID == activities.PayoutID(w.request.ID, len(all)) }) {
			t.Errorf("of %d payouts none is the last try", len(all))
		}
		if w.operator.submitted[a.ID] > 1 || a.WorkflowID != workflows.OffRampID(w.request.ID) {
			t.Errorf("the payout %s was sent %d times, its callbacks go to %s", a.ID, w.operator.submitted[a.ID], a.WorkflowID)
		}
	}
}

// suspend has the operator refuse our credential for the payouts of two other sales.
func (w *saleHarness) suspend() {
	for range 2 {
		w.another()
		if err := w.store.NoteCredential(w.t.Context(), activities.PayoutID(w.other, 1), "2001"); err != nil {
			w.t.Error(err)
		}
	}
}

// anotherOwed opens another sale of the same customer, paid out to the same phone, and takes its crypto.
func (w *saleHarness) anotherOwed() {
	ctx := w.t.Context()
	o := w.market.Sale(w.t, w.store.Store, "10")
	w.other = o.ID
	n := 10 + w.blocks
	w.record(true, exchange.ChainMovement{TxID: txOf(n), From: depositor, To: o.EscrowAddress, Amount: o.Price.Crypto})
	for _, d := range w.deposits(n) {
		_, err := w.store.Store.TakeDeposit(ctx, o.ID, d.ID)
		if err == nil {
			err = w.store.Store.RecordDepositScreening(ctx, d.ID, []exchange.Screening{{Screener: "deny_list", Verdict: exchange.VerdictClear}})
		}
		if err != nil {
			w.t.Errorf("another sale: %v", err)
		}
	}
}

func (w *saleHarness) beginAnother() error {
	id := activities.PayoutID(w.other, 1)
	_, err := w.store.Store.BeginPayout(w.t.Context(), exchange.OrderObject(w.other), exchange.PaymentAttempt{
		ID: id, Provider: "daraja", CallbackToken: "token of " + id.String(), WorkflowID: workflows.MomoPayoutID(exchange.OrderObject(w.other)),
	})
	return err
}

// another begins the payout of another sale.
func (w *saleHarness) another() {
	w.anotherOwed()
	if err := w.beginAnother(); err != nil {
		w.t.Errorf("another payout: %v", err)
	}
}

const anothersReceipt = "UKLANOTHER"

// anotherPaid completes the payout of the other sale.
func (w *saleHarness) anotherPaid() {
	o := exchange.Observation{
		State: exchange.SeenSucceeded, Code: "0", Receipt: anothersReceipt, Amount: money.Must(money.KES, saleOf10), Source: exchange.SourceCallback,
	}
	if _, err := w.store.Store.CompletePayout(w.t.Context(), exchange.OrderObject(w.other), activities.PayoutID(w.other, 1), o); err != nil {
		w.t.Errorf("another payout: %v", err)
	}
}

// resolveByAnother sends the receipt of the other sale's payout.
func (w *saleHarness) resolveByAnother() {
	w.notifyFlow(w.decreeWith(activities.ObjectOrder, w.request.ID, activities.VerbResolve, anothersReceipt), activities.VerbResolve)
}

// declare has two officers declare that the payout was not made.
func (w *saleHarness) declare() { w.declareUnpaid(activities.PayoutID(w.request.ID, 1)) }

// fromWallet has the crypto come from the customer's wallet in our custody.
func (w *saleHarness) fromWallet() {
	w.request.FundWalletID, w.request.RefundAddress = w.market.CustomerWallet.ID, ""
	storetest.Deposit(w.t, w.store.Store, w.market.CustomerWallet.ID, crypto("25"))
	storetest.Gas(w.t, w.store.Store, w.market.CustomerWallet.ID, money.Must(money.TRX, "60"))
}
