package e2e

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/workflows"
)

// orderScenario is the scenario of an order, on TRON.
type orderScenario struct {
	fault  string                                    // of the operator, for the order's prompt
	payout string                                    // of the operator, for the refund to the phone
	verb   string                                    // an operator's command that the trial sends, after the transfer was reverted or the money came late
	late   bool                                      // the money comes when the order has ended
	scene  scene                                     // sets the chain up while nothing else runs; often nil
	after  func(t *testing.T, w *harness, tr *trial) // called when the process is back; nil: ends the faults of a scene
	cancel bool                                      // the prompt can't have been sent, so the customer gives up
	again  bool                                      // an operator has to retry it
	status string
	detail string
	refund bool // everything collected goes back
}

// scene opens the trial's order, arms the point when the order is in the right state, and causes the chain's fault.
type scene func(t *testing.T, w *harness, tr *trial, arm func())

var (
	vanished  = orderScenario{scene: vanish, status: "completed"}
	included  = orderScenario{scene: include, status: "completed"}
	bought    = orderScenario{status: "completed"}
	turned    = orderScenario{fault: "declined", status: "failed", detail: "declined"}
	underpaid = orderScenario{fault: "pays_less", status: "failed", detail: "underpaid", refund: true}
	unsent    = orderScenario{cancel: true, status: "cancelled"}
	redone    = orderScenario{verb: "retry", status: "completed"}
	undone    = orderScenario{verb: "refund", status: "failed", detail: "refund_opened", refund: true}
	marked    = orderScenario{scene: fail, again: true, status: "completed"}
	unpayable = orderScenario{fault: "pays_less", payout: "unregistered", again: true, status: "failed", detail: "underpaid", refund: true}
	lateBack  = orderScenario{late: true, verb: "refund", status: "failed", detail: "declined", refund: true}
	lateKept  = orderScenario{late: true, verb: "resolve", status: "failed", detail: "declined"}
)

// price of the orders here. Underpayments are refunded, so they must exceed the operator's minimum.
const trialPrice = 500

// orderRows are those with orders. When the process dies between storing a prompt and getting its response, the prompt can't
// be sent again, so the order ends unpaid. Orders whose transfers must fail come first, so that no other transfer fails.
func orderRows() []row {
	gone, unreported := &lapse{}, &unreported{}
	return []row{
		{"CancelFunding/*/*", "flows", saleScenario{scene: saleUnfunded, judgement: saleGivenUp}.scenario},
		{"MarkOrder/*/*", "flows", always(marked)},
		{"ProveCommand/*/*", "flows", always(redone)},
		{"ProveCommand/UseCommand#1/after", "flows", always(undone)},
		{"RetryPayout/*/*", "flows", always(redone)},
		{"RefundOrder/*/*", "flows", always(undone)},
		{"DeliverPayment/RecordOutOfGas#?/*", "chain-tron", always(orderScenario{scene: starve, status: "completed"})},
		{"DeliverPayment/RecordExpired#1/before", "chain-tron", always(orderScenario{scene: gone.first, after: gone.on, status: "completed"})},
		{"DeliverPayment/RecordExpired#1/after", "chain-tron", always(orderScenario{scene: gone.second, status: "completed"})},
		{"DeliverPayment/RecordVanished#?/*", "chain-tron", always(vanished)},
		{"MakeWallet/*/*", "signer-tron", always(walletScenario{exchange.Tron})},
		{"PromptPayer/*/*", "momo", always(bought)},
		{"PromptPayer/BeginCollection#1/after", "momo", always(unsent)},
		{"PromptPayer/call#1/before", "momo", always(unsent)},
		{"ConfirmPayment/call#?/*", "momo", always(bought)},
		{"ConfirmPayment/AcceptPayment#?/*", "momo", always(bought)},
		{"ConfirmPayment/SaveReceipt#1/before", "momo", always(orderScenario{scene: unreported.first, after: unreported.on, status: "completed"})},
		{"ConfirmPayment/SaveReceipt#1/after", "momo", always(orderScenario{scene: unreported.second, status: "completed"})},
		{"ConfirmPayment/RecordFailure#?/*", "momo", always(turned)},
		{"SubmitPayout/BeginPayout#1/after", "momo", always(underpaid)}, // the other points of payouts are those of sales
		{"CheckPayout/CompletePayout#1/after", "momo", always(underpaid)},
		{"CheckPayout/FailPayout#1/after", "momo", always(unpayable)},
		{"SettlePayout/*/*", "momo", saleScenario{scene: paidByHand, judgement: settledByHand}.scenario},
		{"RefundException/*/*", "momo", always(lateBack)},
		{"ResolveException/*/*", "momo", always(lateKept)},
		{"TakeStatementPage/TakeReceipt#?/*", "momo", func() scenario { return &statementScenario{} }},
		{"SetStrayPaymentsAside/*/*", "momo", func() scenario { return &statementScenario{} }},
		{"SignPayment/*/*", "signer-tron", always(bought)},
		{"DeliverPayment/call#?/*", "chain-tron", always(bought)},
		{"DeliverPayment/RecordBroadcast#?/*", "chain-tron", always(bought)},
		{"DeliverPayment/RecordIncluded#?/*", "chain-tron", always(included)},
		{"DeliverPayment/RecordFinal#?/*", "chain-tron", always(bought)},
		{"CloseOrder/*/*", "flows", always(turned)},
		{"OpenOrder/*/*", "flows", always(bought)},
		{"OpenOrder/OpenOrder#1/after", "flows", always(houseScenario{})},
		{"CompleteOrder/*/*", "flows", always(bought)},
	}
}

// revert opens the orders whose transfers fail on the chain, and waits until they are parked.
func (w *harness) revert(t *testing.T, parked []*trial) {
	t.Helper()
	w.tron(t, "/faults", map[string]any{"fail_next": len(parked), "fail_with": "REVERT"})
	for _, tr := range parked {
		tr.order = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice)})
	}
	for _, tr := range parked {
		w.until(t, tr.order.ID, "parked", detail("operator"))
		w.parked(t, workflows.OnRampID(tr.order.ID)) // the row changes before the flow parks
	}
	w.tron(t, "/reset", nil)
}

// starve has the order's first transaction fail for lack of gas.
func starve(t *testing.T, w *harness, tr *trial, arm func()) {
	w.tron(t, "/faults", map[string]any{"fail_next": 1, "fail_with": "OUT_OF_ENERGY"})
	arm()
	tr.order = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice)})
}

// play sends an order to the point.
func (b orderScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
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

// restarted ends the chain's faults after a scene, and restarts the watch over it, which sales need.
func (b orderScenario) restarted(t *testing.T, w *harness, tr *trial) {
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

// fail makes the order's transfer fail on the chain; the point is where the order stores what it waits for.
func fail(t *testing.T, w *harness, tr *trial, arm func()) {
	w.tron(t, "/faults", map[string]any{"fail_next": 1, "fail_with": "REVERT"})
	arm()
	tr.order = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice)})
}

// lapse makes the transactions of two orders expire together, because the chain's clock can be put forward only so
// far: the first one's trial opens the other's order too, and arms its point before the process is back.
type lapse struct{ other order }

func (l *lapse) first(t *testing.T, w *harness, tr *trial, arm func()) {
	w.tron(t, "/faults", map[string]any{"drop_next": 1000})
	tr.order = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice)})
	l.other = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice)})
	w.until(t, tr.order.ID, "confirming", confirming)
	w.until(t, l.other.ID, "confirming", confirming)
	arm()
	w.arm(t, "DeliverPayment/RecordExpired#1/after", tr.worker)
	w.tron(t, "/time", map[string]any{"advance_ms": timeStep.Milliseconds()})
}

// on makes Temporal restart the open steps of the dead process. The chain still drops transactions: otherwise the
// second transaction could be included before it expires.
func (l *lapse) on(t *testing.T, w *harness, tr *trial) {
	for _, o := range []order{tr.order, l.other} {
		w.hasten(t, workflows.OnRampID(o.ID))
	}
}

func (l *lapse) second(_ *testing.T, _ *harness, tr *trial, _ func()) { tr.order = l.other }

// unreported opens two orders whose payments have no callback and no notice, so that the product queries them after a
// while. They wait for it together.
type unreported struct{ other order }

func (u *unreported) first(t *testing.T, w *harness, tr *trial, arm func()) {
	tr.order, u.other = w.buyWith(t, orderScenario{fault: "all_lost"}), w.buyWith(t, orderScenario{fault: "all_lost"})
	arm()
	w.arm(t, "ConfirmPayment/SaveReceipt#1/after", tr.worker)
}

func (u *unreported) on(t *testing.T, w *harness, tr *trial) {
	for _, o := range []order{tr.order, u.other} {
		w.hasten(t, workflows.OnRampID(o.ID))
	}
}

func (u *unreported) second(_ *testing.T, _ *harness, tr *trial, _ func()) { tr.order = u.other }

// vanish removes the order's transaction from the chain.
func vanish(t *testing.T, w *harness, tr *trial, arm func()) {
	tr.order = w.aboard(t, purchase{fiat: fmt.Sprint(trialPrice)}, func() {})
	w.attemptsAre(t, tr.order.ID, "included")
	arm()
	w.takeAway(t, tr.order)
}

// include puts the order's transaction into a block that is not final.
func include(t *testing.T, w *harness, tr *trial, arm func()) {
	tr.order = w.aboard(t, purchase{fiat: fmt.Sprint(trialPrice)}, arm)
}

// payLate pays an order that has ended because its payer declined, so that an officer has to decide.
func (w *harness) payLate(t *testing.T, tr *trial) {
	t.Helper()
	phone := newPhone()
	w.fault(t, "late_success_1032", "prompt", phone)
	tr.order = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice), phone: phone})
	w.ends(t, tr.order.ID, "failed", "declined")
	w.release(t)
	w.exception(t, tr.order.ID, "late", "open", fmt.Sprintf("%d.00", trialPrice))
	w.parked(t, workflows.LatePaymentID(w.collection(t, tr.order.ID)))
}

// buyWith opens an order whose payment has faults. The response may come only after a crash, so the request has a
// client's timeout and is repeated with the same key.
func (w *harness) buyWith(t *testing.T, b orderScenario) order {
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

// command sends the operator's decision in the background: the response comes after the crash.
func (w *harness) command(t *testing.T, tr *trial, verb string) {
	t.Helper()
	path := "/api/v1/auth/orders/" + tr.order.ID.String() + "/" + verb
	tr.background(t, w.operator(t), path, uuid.NewString(), map[string]string{"note": "crash trial"}, nil)
}

func (b orderScenario) judge(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	tr.answered(t)
	id := tr.order.ID
	if b.cancel {
		// If judged late, the operator's list has shown that no prompt was sent, or the order has expired.
		o := w.untilFor(t, id, "of unknown outcome, or known not to be paid", recovery, func(o order) bool {
			return o.StatusDetail == "outcome" || o.StatusDetail == "payment_retry" || o.Over()
		})
		if !o.Over() {
			w.sendCommand(t, w.amina(t), id, "cancel", nil)
		}
	}
	if b.again {
		w.parked(t, workflows.OnRampID(id))
		w.sendCommand(t, w.operator(t), id, "retry", nil)
	}
	o := w.untilFor(t, id, "over", recovery, order.Over)
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
