package e2e

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/workflows"
)

// orderTale is the tale of an order, on TRON.
type orderTale struct {
	fault  string                                  // of the operator, on the order's prompt
	payout string                                  // of the operator, on what goes back to the phone
	verb   string                                  // an operator's command that the trial sends, after the transfer was reverted or the money came late
	late   bool                                    // the money comes when the order is over
	scene  scene                                   // sets the chain up, with nothing else under way; nil for the most
	after  func(t *testing.T, w *world, tr *trial) // when the process is back; nil: the chain of a scene behaves again
	cancel bool                                    // the prompt can't have been sent, so the customer gives up
	again  bool                                    // an operator has to let it be tried again
	status string
	detail string
	refund bool // all that was collected goes back
}

// scene opens the trial's order, arms the point when the order is where the chain is to play its trick, and plays it.
type scene func(t *testing.T, w *world, tr *trial, arm func())

var (
	vanished  = orderTale{scene: vanish, status: "completed"}
	included  = orderTale{scene: include, status: "completed"}
	bought    = orderTale{status: "completed"}
	turned    = orderTale{fault: "declined", status: "failed", detail: "declined"}
	underpaid = orderTale{fault: "pays_less", status: "failed", detail: "underpaid", refund: true}
	unsent    = orderTale{cancel: true, status: "cancelled"}
	redone    = orderTale{verb: "retry", status: "completed"}
	undone    = orderTale{verb: "refund", status: "failed", detail: "refund_opened", refund: true}
	marked    = orderTale{scene: fail, again: true, status: "completed"}
	unpayable = orderTale{fault: "pays_less", payout: "unregistered", again: true, status: "failed", detail: "underpaid", refund: true}
	lateBack  = orderTale{late: true, verb: "refund", status: "cancelled", refund: true}
	lateKept  = orderTale{late: true, verb: "resolve", status: "cancelled"}
)

// price of the orders here. What is paid too little goes back, which must be more than the operator's minimum.
const trialPrice = 500

// orderRows are those with orders. Where the process dies between writing that a prompt is to be sent and hearing that it
// was, it can't be sent again, so that such an order ends unpaid. Those whose transfers are to fail come first, when no other
// transfer can be hit.
func orderRows() []row {
	gone, unheard := &lapse{}, &unheard{}
	return []row{
		{"CancelFunding/*/*", "flows", saleTale{scene: saleUnfunded, judgement: saleGivenUp}.tale},
		{"MarkOrder/*/*", "flows", always(marked)},
		{"ProveCommand/*/*", "flows", always(redone)},
		{"ProveCommand/UseCommand#1/after", "flows", always(undone)},
		{"RetryPayout/*/*", "flows", always(redone)},
		{"RefundOrder/*/*", "flows", always(undone)},
		{"DeliverPayment/RecordExpired#1/before", "chain-tron", always(orderTale{scene: gone.first, after: gone.on, status: "completed"})},
		{"DeliverPayment/RecordExpired#1/after", "chain-tron", always(orderTale{scene: gone.second, status: "completed"})},
		{"DeliverPayment/RecordVanished#?/*", "chain-tron", always(vanished)},
		{"MakeWallet/*/*", "signer-tron", always(walletTale{exchange.Tron})},
		{"PromptPayer/*/*", "momo", always(bought)},
		{"PromptPayer/BeginAttempt#1/after", "momo", always(unsent)},
		{"PromptPayer/call#1/before", "momo", always(unsent)},
		{"ConfirmPayment/call#?/*", "momo", always(bought)},
		{"ConfirmPayment/AcceptPayment#?/*", "momo", always(bought)},
		{"ConfirmPayment/SaveReceipt#1/before", "momo", always(orderTale{scene: unheard.first, after: unheard.on, status: "completed"})},
		{"ConfirmPayment/SaveReceipt#1/after", "momo", always(orderTale{scene: unheard.second, status: "completed"})},
		{"ConfirmPayment/RecordFailure#?/*", "momo", always(turned)},
		{"SubmitRefund/*/*", "momo", always(underpaid)},
		{"CheckRefund/CompleteRefund#?/*", "momo", always(underpaid)},
		{"CheckRefund/RecordFailure#?/*", "momo", always(unpayable)},
		{"CheckRefund/FailRefund#?/*", "momo", always(unpayable)},
		{"SettleRefund/*/*", "momo", saleTale{scene: paidByHand, judgement: settledByHand}.tale},
		{"RefundException/*/*", "momo", always(lateBack)},
		{"ResolveException/*/*", "momo", always(lateKept)},
		{"TakeStatementPage/TakeReceipt#?/*", "momo", func() tale { return &statementTale{} }},
		{"SetStrayPaymentsAside/*/*", "momo", func() tale { return &statementTale{} }},
		{"SignPayment/*/*", "signer-tron", always(bought)},
		{"DeliverPayment/call#?/*", "chain-tron", always(bought)},
		{"DeliverPayment/RecordBroadcast#?/*", "chain-tron", always(bought)},
		{"DeliverPayment/RecordIncluded#?/*", "chain-tron", always(included)},
		{"DeliverPayment/RecordFinal#?/*", "chain-tron", always(bought)},
		{"CloseOrder/*/*", "flows", always(turned)},
		{"OpenOrder/*/*", "flows", always(bought)},
		{"CompleteOrder/*/*", "flows", always(bought)},
	}
}

// revert opens the orders whose transfers fail on the chain, and waits until they ask for an operator.
func (w *world) revert(t *testing.T, parked []*trial) {
	t.Helper()
	w.tron(t, "/faults", map[string]any{"fail_next": len(parked), "fail_with": "REVERT"})
	for _, tr := range parked {
		tr.order = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice)})
	}
	for _, tr := range parked {
		w.until(t, tr.order.ID, "parked", detail("operator"))
		w.parked(t, workflows.OnRampID(tr.order.ID)) // the row says so before the flow does
	}
	w.tron(t, "/reset", nil)
}

// play sends an order to the point.
func (b orderTale) play(t *testing.T, w *world, tr *trial, arm func()) {
	t.Helper()
	switch {
	case b.scene != nil:
		b.scene(t, w, tr, arm)
	case b.late:
		w.payLate(t, tr)
		arm()
		w.command(t, tr, b.verb)
	case b.verb != "":
		arm()
		w.command(t, tr, b.verb)
	default:
		arm()
		tr.order = w.buyWith(t, b)
	}
}

// restarted makes the chain behave again after a scene, and has the watch over it go on, which sales need.
func (b orderTale) restarted(t *testing.T, w *world, tr *trial) {
	t.Helper()
	if tr.worker == workflows.QueueChain(exchange.Tron) {
		w.hasten(t, workflows.DepositWatchID(exchange.Tron))
	}
	switch {
	case b.after != nil:
		b.after(t, w, tr)
	case b.scene != nil:
		w.tron(t, "/reset", nil)
	}
}

// fail lets the order's transfer fail on the chain; the point is where the order says what it waits for.
func fail(t *testing.T, w *world, tr *trial, arm func()) {
	w.tron(t, "/faults", map[string]any{"fail_next": 1, "fail_with": "REVERT"})
	arm()
	tr.order = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice)})
}

// lapse has the transactions of two orders lapse at once, because the chain's clock can be put forward only so
// far: the first one's trial opens the other's order too, and arms its point before the process is back.
type lapse struct{ other order }

func (l *lapse) first(t *testing.T, w *world, tr *trial, arm func()) {
	w.tron(t, "/faults", map[string]any{"drop_next": 1000})
	tr.order = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice)})
	l.other = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice)})
	w.until(t, tr.order.ID, "confirming", confirming)
	w.until(t, l.other.ID, "confirming", confirming)
	arm()
	w.arm(t, "DeliverPayment/RecordExpired#1/after", tr.worker)
	w.tron(t, "/time", map[string]any{"advance_ms": timeStep.Milliseconds()})
}

// on has Temporal begin anew what the dead process had in hand. The chain goes on forgetting: else the second
// transaction could come before it lapses.
func (l *lapse) on(t *testing.T, w *world, tr *trial) {
	for _, o := range []order{tr.order, l.other} {
		w.hasten(t, workflows.CryptoPayoutID(w.paymentOf(t, o.ID)))
	}
}

func (l *lapse) second(_ *testing.T, _ *world, tr *trial, _ func()) { tr.order = l.other }

// unheard are two orders of whose payments nothing is heard, so that the product asks after a while. They wait for it
// together.
type unheard struct{ other order }

func (u *unheard) first(t *testing.T, w *world, tr *trial, arm func()) {
	tr.order, u.other = w.buyWith(t, orderTale{fault: "callback_lost"}), w.buyWith(t, orderTale{fault: "callback_lost"})
	arm()
	w.arm(t, "ConfirmPayment/SaveReceipt#1/after", tr.worker)
}

func (u *unheard) on(t *testing.T, w *world, tr *trial) {
	for _, o := range []order{tr.order, u.other} {
		w.hasten(t, workflows.OnRampID(o.ID))
	}
}

func (u *unheard) second(_ *testing.T, _ *world, tr *trial, _ func()) { tr.order = u.other }

// vanish takes the order's transaction out of the chain.
func vanish(t *testing.T, w *world, tr *trial, arm func()) {
	tr.order = w.aboard(t, purchase{fiat: fmt.Sprint(trialPrice)}, func() {})
	w.attemptsAre(t, tr.order.ID, "included")
	arm()
	w.takeAway(t, tr.order)
}

// include has the order's transaction be in a block that is not final.
func include(t *testing.T, w *world, tr *trial, arm func()) {
	tr.order = w.aboard(t, purchase{fiat: fmt.Sprint(trialPrice)}, arm)
}

// payLate has the money of an order come when its customer has given it up.
func (w *world) payLate(t *testing.T, tr *trial) {
	t.Helper()
	phone := newPhone()
	w.fault(t, "late_success_1037", "prompt", phone)
	tr.order = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice), phone: phone})
	w.until(t, tr.order.ID, "waiting for another prompt", detail("payment_retry"))
	w.tell(t, w.amina(t), tr.order.ID, "cancel", nil)
	w.ends(t, tr.order.ID, "cancelled", "cancelled_by_customer")
	w.release(t)
	w.exception(t, tr.order.ID, "late", "open", fmt.Sprintf("%d.00", trialPrice))
	w.parked(t, workflows.LatePaymentID(w.collection(t, tr.order.ID)))
}

// buyWith opens an order whose payer meets faults. The answer may come only after a crash, so it is not waited
// for longer than a client would, and asked for again with the same key.
func (w *world) buyWith(t *testing.T, b orderTale) order {
	t.Helper()
	phone := newPhone()
	if b.fault != "" {
		w.fault(t, b.fault, "prompt", phone)
	}
	if b.payout != "" {
		w.fault(t, b.payout, "payout", phone)
	}
	return w.buy(t, purchase{fiat: fmt.Sprint(trialPrice), phone: phone})
}

// command sends the operator's decision beside the test: its answer comes after the crash.
func (w *world) command(t *testing.T, tr *trial, verb string) {
	t.Helper()
	path := "/api/v1/auth/orders/" + tr.order.ID.String() + "/" + verb
	tr.background(t, w.operator(t), path, uuid.NewString(), map[string]string{"note": "crash trial"}, nil)
}

func (b orderTale) judge(t *testing.T, w *world, tr *trial) {
	t.Helper()
	tr.answered(t)
	id := tr.order.ID
	if b.cancel {
		// Judged late, the operator's list has told that nobody was asked, or the order's time is over.
		o := w.untilFor(t, id, "of unknown outcome, or known not to be paid", recovery, func(o order) bool {
			return o.StatusDetail == "outcome" || o.StatusDetail == "payment_retry" || o.over()
		})
		if !o.over() {
			w.tell(t, w.amina(t), id, "cancel", nil)
		}
	}
	if b.again {
		w.parked(t, workflows.OnRampID(id))
		w.tell(t, w.operator(t), id, "retry", nil)
	}
	o := w.untilFor(t, id, "over", recovery, order.over)
	if o.Status != b.status || (b.detail != "" && o.StatusDetail != b.detail) {
		t.Fatalf("it ended %s, not %s/%s", o, b.status, b.detail)
	}
	books := w.books(t)
	if n := len(prompted(books, o.ID)); n > 1 {
		t.Errorf("the payer was prompted %d times", n)
	}
	if o.Status == "completed" {
		w.paidOnce(t, books, o)
		return
	}
	w.notPaidOut(t, o)
	effects := collected(books, o.ID)
	kept := b.late && !b.refund
	switch {
	case !b.refund && !kept && len(effects) != 0:
		t.Errorf("nothing should have been collected: %+v", effects)
	case (b.refund || kept) && len(effects) != 1:
		t.Errorf("it was collected %d times: %+v", len(effects), effects)
	case kept:
		w.exception(t, o.ID, "late", "accepted", fmt.Sprintf("%d.00", trialPrice))
		if back := paidBack(books, o.Phone.String); len(back) != 0 {
			t.Errorf("what was kept went back: %+v", back)
		}
	case b.refund:
		w.refunded(t, o, effects[0].Amount)
	}
}
