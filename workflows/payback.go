package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// payback sees a refund to its end on behalf of the flow that owes it: it starts the child that pays
// it out, passes callbacks and commands on while that runs, and parks when it hands a reason back.
type payback struct {
	refundID uuid.UUID
	orderID  uuid.UUID
	merchant uuid.UUID
	home     string
	desk     *desk
	until    waiting
	running  bool
	floated  bool // somebody says that there is more to pay out from
}

// run ends when the refund is paid, by the operator or by other means.
func (b *payback) run(ctx workflow.Context) {
	b.desk.pass = b.pass
	defer func() { b.desk.pass = nil }()
	listening, stop := workflow.WithCancel(ctx) // a flow may owe another refund afterwards, which listens for itself
	defer stop()
	workflow.GoNamed(listening, "float", b.listen)
	for try := 1; ; {
		b.floated = false // what is said from here on may be of float that the try did not see
		result, err := b.pay(ctx, try)
		if err == nil && result.Completed {
			return
		}
		reason := Reason(result.Reason)
		if err != nil {
			reason = ReasonStepFailed
		}
		b.desk.park(ctx, reason, err)
		b.until(ctx, func() bool {
			return b.desk.hasDecision() || (b.floated && (reason == ReasonRefundFloat || reason == ReasonRefundSuspended))
		})
		if !b.desk.hasDecision() {
			b.desk.unpark(ctx, WaitsForMomo) // nothing was sent, so that the try is the same
			continue
		}
		d := b.desk.take()
		b.desk.unpark(ctx, WaitsForMomo)
		if d.verb == activities.VerbResolve && b.settle(ctx, try, d.proof) {
			return
		}
		if d.verb == activities.VerbRefund {
			b.confirm(ctx, d.proof)
		}
		if d.verb == activities.VerbRetry && result.Refused {
			try++ // the payout before was definitely refused, so that another one can't pay twice
		}
	}
}

// listen hears that there may be more to pay out from, until it is stopped.
func (b *payback) listen(ctx workflow.Context) {
	told := workflow.NewSelector(ctx)
	told.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	told.AddReceive(workflow.GetSignalChannel(ctx, SignalFloat), func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		b.floated = true
	})
	for ctx.Err() == nil {
		told.Select(ctx)
	}
}

func (b *payback) pay(ctx workflow.Context, try int) (RefundResult, error) {
	in := RefundInput{RefundID: b.refundID, OrderID: b.orderID, Try: try, Home: b.home}
	c := child{
		id: RefundID(b.refundID), summary: "Pay a refund out", priority: fairness(priorityRefund, b.merchant),
		shown: attributes(StageRefund, WaitsForMomo),
	}
	return runWatched(ctx, c, Refund, in, b.until, func(running bool) { b.running = running })
}

// settle completes the refund by command, with a reference.
func (b *payback) settle(ctx workflow.Context, try int, proof activities.Proof) bool {
	in := activities.SettleRefundInput{RefundID: b.refundID, AttemptID: activities.PayoutID(b.refundID, try), Proof: proof}
	err := do(ctx, rail, "Settle the refund", refunds.SettleRefund, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the refund was not settled", "error", err)
	}
	return err == nil
}

// confirm lets a refund with a doubtful payee go to the phone that was prompted. Where that fails, the next
// try hands the same reason back.
func (b *payback) confirm(ctx workflow.Context, proof activities.Proof) {
	in := activities.ConfirmPayeeInput{RefundID: b.refundID, Proof: proof}
	if err := do(ctx, rail, "Confirm the payee", refunds.ConfirmPayee, in); err != nil {
		workflow.GetLogger(ctx).Error("the payee was not confirmed", "error", err)
	}
}

// wake passes a callback on to the child. One that comes while no child runs is stored like any other
// and found by the next.
func (b *payback) wake(ctx workflow.Context, ref CallbackRef) {
	if !b.running {
		return
	}
	err := workflow.SignalExternalWorkflow(ctx, RefundID(b.refundID), "", SignalCallback, ref).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("a callback was not passed on", "error", err)
	}
}

// pass hands an operator's command on to the child.
func (b *payback) pass(ctx workflow.Context, name string, ref CommandRef) error {
	if !b.running {
		return refuse(exchange.CodeStateConflict, "The refund is not being paid out.")
	}
	return workflow.SignalExternalWorkflow(ctx, RefundID(b.refundID), "", name, ref).Get(ctx, nil)
}
