package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// OnRamp is the flow of an order that buys crypto: open, collect the shillings, pay out the crypto, settle with the vendor,
// and refund what was overpaid.
func OnRamp(ctx workflow.Context, in OnRampInput) (OnRampResult, error) {
	// Money may be moving, so a cancellation of the execution is ignored. Customers cancel orders by the update "cancel",
	// operators by their commands.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &onRamp{in: in}
	if err := f.handlers(ctx); err != nil {
		return OnRampResult{}, err
	}
	return attended(ctx, f.commands, f.run)
}

// onRamp is the state of one purchase.
type onRamp struct {
	ramp
	in OnRampInput

	prompts   []*prompt     // every prompt that was made, in order
	callbacks []CallbackRef // that are not handled yet
	retry     *request
	answered  map[uuid.UUID]bool // the intents for another prompt that were handed on
	repeatAt  time.Time          // when to repeat a prompt after a temporary refusal
	repeats   int
	overdue   bool // the order expired while the prompt's outcome was open
	giveUpAt  time.Time

	payment activities.Confirmed // what paid the order
	watched map[uuid.UUID]bool   // prompts that have a watch of their own
	owed    []uuid.UUID          // refunds that must be paid out
}

// prompt is one try to collect.
type prompt struct {
	id     uuid.UUID
	open   bool // its outcome may still pay the order
	unsure bool // the step that sends it failed, so it is unknown whether it was sent
	soft   bool // it failed, but late money is possible
	asked  int  // checks so far
	next   time.Time
	since  time.Time
	state  activities.PaymentState
}

func (f *onRamp) run(ctx workflow.Context) (OnRampResult, error) {
	f.open(ctx)
	if f.refusal != nil {
		return f.finish(ctx)
	}
	f.rejoin(ctx)
	f.collect(ctx)
	f.watchOthers(ctx)
	if f.payment.PaymentID != uuid.Nil && !exchange.OnRampMachine.Terminal(f.order.Status) {
		f.deliver(ctx)
	}
	for _, id := range f.owed {
		f.giveBack(ctx, id)
	}
	return f.finish(ctx)
}

// open writes the order and shows it.
func (f *onRamp) open(ctx workflow.Context) {
	in := activities.IntentInput{IntentID: f.in.IntentID}
	f.order = open(ctx, &f.flow, "Open the order", orders.OpenOrder, in, nil)
	if f.refusal != nil {
		return
	}
	if !shownAtStart(ctx) {
		show(ctx, attributesOf(f.order)...)
	}
	f.showWait(ctx, "the payer", f.order.ExpiresAt)
}

// rejoin finds what an earlier run of the flow did: it was terminated, or reset to its beginning. An order that was just opened
// has nothing to find.
func (f *onRamp) rejoin(ctx workflow.Context) {
	if f.pending() && f.order.Detail == exchange.WaitPrompt {
		return
	}
	before := mustStep(ctx, &f.flow, database, "Find what an earlier run did", orders.PurchaseProgress, activities.OrderInput{OrderID: f.order.OrderID})
	f.owed = before.Owed
	for n := 1; n <= before.Prompts; n++ {
		f.prompts = append(f.prompts, &prompt{id: activities.CollectionID(f.order.OrderID, n), open: true, since: workflow.Now(ctx)})
		if f.pending() {
			f.submit(ctx, n) // which sends nothing again
			f.look(ctx, f.prompts[n-1], false)
		}
	}
	if !f.pending() {
		f.recall(ctx)
	}
}

// deliver pays out the crypto and settles with the vendor. Only an operator can end it otherwise.
func (f *onRamp) deliver(ctx workflow.Context) {
	f.moved(ctx, StagePayout, WaitsForChain, "the network")
	for {
		result := f.payOutCrypto(ctx, f.payment.PaymentID, "Pay out", "to the customer", f.until)
		if result.Completed {
			break
		}
		if f.stuck(ctx, Reason(result.Reason)) {
			return
		}
		f.commands.unpark(ctx, WaitsForChain)
	}
	f.order.OrderState = quickly(ctx, &f.flow, "Complete the order", orders.CompleteOrder, activities.OrderInput{OrderID: f.order.OrderID})
}

// stuck waits for an operator's decision about a payout that can't go on, and reports whether the money is refunded
// instead. If the refund can't be opened, the flow keeps waiting, except when a transaction may still move the crypto: that
// has to end first.
func (f *onRamp) stuck(ctx workflow.Context, r Reason) bool {
	var trouble error
	for {
		d := f.parked(ctx, r, trouble)
		if d.verb == activities.VerbRetry {
			f.must(ctx, "Approve the payment again", func() error { return approveAgain(ctx, &f.payment.PaymentID, d.proof) })
			return false
		}
		if trouble = f.refund(ctx, d.proof); trouble == nil {
			return true
		}
		if isConflict(trouble) {
			return false
		}
	}
}

// refund cancels the crypto payout by an operator's command and opens the refund.
func (f *onRamp) refund(ctx workflow.Context, proof activities.Proof) error {
	in := activities.RefundOrderInput{OrderID: f.order.OrderID, Proof: proof}
	var opened activities.RefundOpened
	err := f.commands.carryOut(ctx, func(k kind) (err error) {
		opened, err = step(ctx, k, "Open the refund", orders.RefundOrder, in)
		return err
	})
	if err != nil {
		workflow.GetLogger(ctx).Error("the refund could not be opened", "error", err)
		return err
	}
	f.order.OrderState = opened.OrderState
	f.owed = append(f.owed, opened.RefundID)
	f.commands.unpark(ctx, WaitsForMomo)
	return nil
}

// giveBack pays out a refund: the whole payment, or the overpaid part.
func (f *onRamp) giveBack(ctx workflow.Context, refundID uuid.UUID) {
	f.moved(ctx, StageRefund, WaitsForMomo, "the refund")
	f.refundTries(refundID, f.order.OrderID, f.order.MerchantID).run(ctx)
}

// finish handles the last messages and ends the flow.
func (f *onRamp) finish(ctx workflow.Context) (OnRampResult, error) {
	for {
		letOthersRun(ctx)
		f.attend(ctx)
		f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The order has ended."))
		f.answer(&f.retry, refuse(exchange.CodeStateConflict, "The order has ended."))
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return OnRampResult{}, err
		}
		letOthersRun(ctx)
		if len(f.callbacks) == 0 {
			break
		}
	}
	if f.order.Status == "" { // refused
		return OnRampResult{OrderID: f.orderID, Detail: words(f.refusal)}, nil
	}
	f.ended(ctx)
	return OnRampResult{OrderID: f.order.OrderID, Status: f.order.Status, Detail: f.order.Detail}, nil
}
