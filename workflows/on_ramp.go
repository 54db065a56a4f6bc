package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// OnRamp is the flow of an order that buys crypto: open, collect the shillings, pay the crypto out,
// settle with the vendor, and give back what does not belong to us.
func OnRamp(ctx workflow.Context, in OnRampInput) (OnRampResult, error) {
	// Money may be on its way, so a cancellation of the execution is not obeyed. Customers cancel orders
	// by the update "cancel", operators by their commands.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &onRamp{in: in}
	if err := f.handlers(ctx); err != nil {
		return OnRampResult{}, err
	}
	return attended(ctx, f.desk, f.run)
}

// onRamp is one order on its way.
type onRamp struct {
	ramp
	in OnRampInput

	prompts   []*prompt     // every prompt that was made, in order
	callbacks []CallbackRef // that nobody looked at yet
	retry     *request
	repeatAt  time.Time // when a prompt that was refused for the moment is tried again
	repeats   int
	overdue   bool // the order's time was over and the prompt's outcome open
	giveUpAt  time.Time

	payment activities.Confirmed // what paid the order
	watched map[uuid.UUID]bool   // prompts that were handed to a watch of their own
	owed    []uuid.UUID          // refunds that are to be paid out
	back    *payback             // the one that is being paid out
}

// prompt is one try to collect.
type prompt struct {
	id     uuid.UUID
	open   bool // its outcome may still pay the order
	unsure bool // the step that was to send it failed, so that nobody knows whether it did
	soft   bool // it failed, yet late money is possible
	asked  int  // looks so far
	next   time.Time
	since  time.Time
	state  activities.PaymentState
}

func (f *onRamp) run(ctx workflow.Context) (OnRampResult, error) {
	f.open(ctx)
	if f.refusal != nil {
		return f.finish(ctx)
	}
	f.collect(ctx)
	f.watchOthers(ctx)
	if f.payment.PaymentID != uuid.Nil {
		f.deliver(ctx)
	}
	for _, id := range f.owed {
		f.giveBack(ctx, id)
	}
	return f.finish(ctx)
}

// open writes the order and shows it.
func (f *onRamp) open(ctx workflow.Context) {
	in := activities.OpenOrderInput{Request: f.in.Request, Actor: f.in.Actor}
	f.order = open(ctx, &f.flow, "Open the order", orders.OpenOrder, in, nil)
	if f.refusal != nil {
		return
	}
	if f.in.Request.Seen == (exchange.SeenOffer{}) { // else the flow was started with them
		show(ctx, attributesOf(f.order)...)
	}
	f.tell(ctx, "the payer", f.order.ExpiresAt)
}

// deliver pays the crypto out and settles with the vendor. Only a person ends it otherwise.
func (f *onRamp) deliver(ctx workflow.Context) {
	f.moved(ctx, StagePayout, WaitsForChain, "the network")
	for {
		result := f.payOutCrypto(ctx, f.payment.PaymentID, "Pay", "out", f.until)
		if result.Completed {
			break
		}
		if f.stuck(ctx, Reason(result.Reason)) {
			return
		}
		f.desk.unpark(ctx, WaitsForChain)
	}
	f.must(ctx, "Complete the order", func() error { return f.complete(ctx) })
}

// stuck waits with a payout that can't go on until an operator decides, and reports whether the money is
// given back instead. A refund that could not be opened is no retry: the flow goes on waiting, except
// where a transaction may still move the crypto and has to be seen to its end first.
func (f *onRamp) stuck(ctx workflow.Context, r Reason) bool {
	var trouble error
	for {
		d := f.parked(ctx, r, trouble)
		if d.verb == activities.VerbRetry {
			f.must(ctx, "Approve the payment again", func() error { return approveAgain(ctx, f.payment.PaymentID, d.proof) })
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

// complete books the end of the order. It is quick and always follows the payout, so it is local; where
// that fails, it is a step that everybody sees.
func (f *onRamp) complete(ctx workflow.Context) error {
	in := activities.OrderInput{OrderID: f.order.OrderID}
	state, err := step(ctx, local, "Complete the order", orders.CompleteOrder, in)
	if err != nil {
		state, err = step(ctx, database, "Complete the order", orders.CompleteOrder, in)
	}
	if err == nil {
		f.order.OrderState = state
	}
	return err
}

// refund gives the crypto leg up by command and opens the refund.
func (f *onRamp) refund(ctx workflow.Context, proof activities.Proof) error {
	in := activities.RefundOrderInput{OrderID: f.order.OrderID, Proof: proof}
	opened, err := step(ctx, database, "Open the refund", orders.RefundOrder, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the refund could not be opened", "error", err)
		return err
	}
	f.order.OrderState = opened.OrderState
	f.owed = append(f.owed, opened.RefundID)
	f.desk.unpark(ctx, WaitsForMomo)
	return nil
}

// giveBack pays out what is to be returned: all of it, or what was paid too much.
func (f *onRamp) giveBack(ctx workflow.Context, refundID uuid.UUID) {
	f.moved(ctx, StageRefund, WaitsForMomo, "the refund")
	f.back = &payback{
		refundID: refundID, orderID: f.order.OrderID, home: f.id, desk: f.desk,
		merchant: f.order.MerchantID, until: f.until,
	}
	f.back.run(ctx)
	f.back = nil
}

// finish looks at what came in last and ends the flow.
func (f *onRamp) finish(ctx workflow.Context) (OnRampResult, error) {
	for {
		letOthersRun(ctx)
		f.attend(ctx)
		f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The order is over."))
		f.answer(&f.retry, refuse(exchange.CodeStateConflict, "The order is over."))
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return OnRampResult{}, err
		}
		letOthersRun(ctx)
		if len(f.callbacks) == 0 {
			break
		}
	}
	if f.order.Status == "" { // refused
		return OnRampResult{OrderID: f.in.Request.ID, Detail: words(f.refusal)}, nil
	}
	f.ended(ctx)
	return OnRampResult{OrderID: f.order.OrderID, Status: f.order.Status, Detail: f.order.Detail}, nil
}
