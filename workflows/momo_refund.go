package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// momoRefund carries out a refund for the flow that owes it: it starts the child that pays it out, forwards callbacks and
// commands while the child runs, and parks when the child returns a reason.
type momoRefund struct {
	refundID uuid.UUID
	orderID  uuid.UUID
	merchant uuid.UUID
	home     string
	commands *commands
	until    waiting
	running  bool
	floated  bool // a signal came that there may be more float
	try      int
	full     bool // the last try failed at the payee's daily limit
	waits    bool // for the operator's next day
	again    bool // an operator ended that wait
}

func (b *momoRefund) object() exchange.PayoutObject { return exchange.PayoutOfRefund(b.refundID) }

// run ends when the refund is paid, by the operator or by other means.
func (b *momoRefund) run(ctx workflow.Context) {
	b.commands.pass = b.pass
	defer func() { b.commands.pass = nil }()
	listening, stop := workflow.WithCancel(ctx) // a flow may owe another refund afterwards, which listens for itself
	defer stop()
	workflow.GoNamed(listening, "float", b.listen)
	for b.try = 1; ; {
		b.floated = false // a signal from here on may be about float that this try did not see
		result, err := b.pay(ctx)
		if err == nil && result.Completed {
			return
		}
		b.try = max(b.try, result.Try)
		full := err == nil && result.Class == exchange.ClassPayeeDay && !b.full
		if b.full = full; full {
			b.awaitDay(ctx)
			continue
		}
		reason := Reason(result.Reason)
		if err != nil {
			reason = ReasonStepFailed
		}
		if b.decided(ctx, reason, result, err) {
			return
		}
	}
}

// decided parks the flow until it can go on, carries out an operator's command, and reports whether that ended the refund.
func (b *momoRefund) decided(ctx workflow.Context, reason Reason, result MomoPayoutResult, cause error) bool {
	b.commands.park(ctx, reason, cause)
	b.until(ctx, func() bool {
		return b.commands.hasDecision() || (b.floated && (reason == ReasonRefundFloat || reason == ReasonRefundSuspended))
	})
	if !b.commands.hasDecision() {
		b.commands.unpark(ctx, WaitsForMomo) // nothing was sent, so the try is the same
		return false
	}
	d := b.commands.take()
	b.commands.unpark(ctx, WaitsForMomo)
	switch {
	case d.verb == activities.VerbResolve:
		return b.settle(ctx, result.AttemptID, d.proof)
	case d.verb == activities.VerbRefund:
		b.confirm(ctx, d.proof)
	case d.verb == activities.VerbRetry && result.Refused:
		b.try++ // the previous payout was definitely refused, so another one can't pay twice
	}
	return false
}

// awaitDay waits for the operator's next day, when the payee's daily limit starts again, or for an operator's retry. Nothing
// was sent, so the try is the same. If the limit refuses the next day's payout too, the flow parks.
func (b *momoRefund) awaitDay(ctx workflow.Context) {
	before, now := b.commands.card, workflow.Now(ctx)
	tomorrow := nextDay(now)
	c := card{title: "Refund is pending"}
	c.add("Refund", b.refundID.String())
	c.add("Order", b.orderID.String())
	c.add("Waits for", "the next day: the mobile money operator's daily limit for this payee is reached")
	c.add("Until", moment(tomorrow))
	b.waits, b.again = true, false
	b.commands.describe(ctx, c)
	b.until.pause(ctx, tomorrow.Sub(now), "Wait for the operator's next day", func() bool { return b.again })
	b.waits = false
	if b.again {
		b.full = false // the day has not passed, so the limit may refuse once more
	}
	b.commands.describe(ctx, before)
}

// listen receives signals that there may be more float, until it is stopped.
func (b *momoRefund) listen(ctx workflow.Context) {
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(workflow.GetSignalChannel(ctx, SignalFloat), func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		b.floated = true
	})
	for ctx.Err() == nil {
		selector.Select(ctx)
	}
}

func (b *momoRefund) pay(ctx workflow.Context) (MomoPayoutResult, error) {
	in := MomoPayoutInput{Object: b.object(), OrderID: b.orderID, Try: b.try, Home: b.home}
	c := child{
		id: MomoPayoutID(b.object()), summary: "Pay out a refund", priority: fairness(priorityRefund, b.merchant),
		shown: attributes(StageRefund, WaitsForMomo),
	}
	return runWatched(ctx, c, MomoPayout, in, b.until, func(running bool) { b.running = running })
}

// settle completes the refund by an operator's command with a receipt: of the attempt that the child returned, or, where it
// returned none, of the open or newest one.
func (b *momoRefund) settle(ctx workflow.Context, attempt uuid.UUID, proof activities.Proof) bool {
	in := activities.SettlePayoutInput{Object: b.object(), AttemptID: attempt, Proof: proof}
	err := do(ctx, rail, "Settle the refund", payouts.SettlePayout, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the refund could not be settled", "error", err)
	}
	return err == nil
}

// confirm lets a refund with a doubtful payee go to the phone that was prompted. If that fails, the next try returns the
// same reason.
func (b *momoRefund) confirm(ctx workflow.Context, proof activities.Proof) {
	in := activities.ConfirmPayeeInput{RefundID: b.refundID, Proof: proof}
	if err := do(ctx, rail, "Confirm the payee", refunds.ConfirmPayee, in); err != nil {
		workflow.GetLogger(ctx).Error("the payee could not be confirmed", "error", err)
	}
}

// wake forwards a callback to the child. A callback that comes while no child runs is stored, and the next child finds it.
func (b *momoRefund) wake(ctx workflow.Context, ref CallbackRef) {
	if !b.running {
		return
	}
	err := workflow.SignalExternalWorkflow(ctx, MomoPayoutID(b.object()), "", SignalCallback, ref).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("a callback could not be forwarded to the child flow", "error", err)
	}
}

// pass forwards an operator's command to the child. While the refund waits for the operator's next day there is none, and a
// retry ends the wait.
func (b *momoRefund) pass(ctx workflow.Context, name string, ref CommandRef) error {
	switch {
	case b.waits && name == activities.VerbRetry:
		b.again = true
		return nil
	case b.waits:
		return refuse(exchange.CodeStateConflict, "The refund waits for the next day, because its payee has reached the operator's daily limit. It takes a retry only.")
	case !b.running:
		return refuse(exchange.CodeStateConflict, "The refund is not being paid out now.")
	}
	return workflow.SignalExternalWorkflow(ctx, MomoPayoutID(b.object()), "", name, ref).Get(ctx, nil)
}
