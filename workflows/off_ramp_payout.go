package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// Limits of paying the shillings out.
const (
	busyPause      = 5 * time.Minute // after the operator was busy
	maxBusy        = 3               // payouts that are repeated without an operator
	floatPause     = 5 * time.Minute // between checks whether there is enough float
	floatQuestions = 30 * time.Minute
	trialPause     = 2 * time.Minute // how long a payout on trial delays the next one
)

// payOut pays out the shillings. It ends when the order is completed, or when it failed and its refund is open. The next
// payout is made only after the previous one was definitely refused, so that no two can pay.
func (f *offRamp) payOut(ctx workflow.Context) {
	f.moved(ctx, StagePayout, WaitsForMomo, "the mobile money operator")
	t := &payoutTries{next: 1}
	for f.order.Status == exchange.OrderProcessing {
		f.floated = false // a signal from here on may be about float that this try did not see
		result, err := f.momoPayout(ctx, t.next)
		switch {
		case err != nil:
			f.parked(ctx, ReasonStepFailed, err)
			f.commands.unpark(ctx, WaitsForMomo)
		case result.Completed:
			f.commands.unpark(ctx, WaitsForNothing)
			f.order.OrderState = activities.OrderState{OrderID: f.order.OrderID, Status: exchange.OrderCompleted, Detail: exchange.WaitNothing}
		default:
			f.refusedPayout(ctx, result, t)
		}
	}
}

// payoutTries counts the payouts of an order.
type payoutTries struct {
	next  int
	busy  int       // repeated because the operator was busy
	short time.Time // since when the float is too small; zero while it is not
	// claimed is since when a source reports that a refused payout was made; zero while no source does.
	claimed time.Time
	full    bool // the last try failed at the payee's daily limit
}

// refusedPayout decides how to go on after a payout that was not made.
func (f *offRamp) refusedPayout(ctx workflow.Context, r MomoPayoutResult, t *payoutTries) {
	short := Reason(r.Reason) == ReasonMomoFloat || (r.Refused && r.Class == exchange.ClassFloat)
	if r.Refused {
		t.next = max(t.next, r.Try) + 1
	}
	if !short {
		t.short = time.Time{}
	}
	claimed, full := Reason(r.Reason) == ReasonMomoClaimed, r.Class == exchange.ClassPayeeDay && !t.full
	if t.full = full; !claimed {
		t.claimed = time.Time{}
	}
	switch {
	case Reason(r.Reason) == ReasonDepositScreening:
		f.clearedAgain(ctx, StagePayout, WaitsForMomo, "the mobile money operator")
	case claimed:
		f.awaitClaim(ctx, t)
	case full:
		f.awaitDay(ctx)
	case r.Refused && (r.Class == exchange.ClassPayee || r.Class == exchange.ClassDeclared):
		f.must(ctx, "Open the refund", func() error { return f.refund(ctx, activities.Proof{}, "payout refused: "+r.Code) })
	case r.Refused && r.Class == exchange.ClassBusy && t.busy < maxBusy:
		t.busy++
		f.pause(ctx, busyPause, "Pay again", func() bool { return false })
	case short:
		f.awaitFloat(ctx, t)
	case Reason(r.Reason) == ReasonMomoSuspended, Reason(r.Reason) == ReasonMomoCredential:
		f.awaitBreaker(ctx, r)
	default:
		if !f.refused(ctx, Reason(r.Reason), nil) {
			f.commands.unpark(ctx, WaitsForMomo)
		}
	}
}

// awaitFloat waits until there may be enough float, and parks the flow after a while.
func (f *offRamp) awaitFloat(ctx workflow.Context, t *payoutTries) {
	now := workflow.Now(ctx)
	if t.short.IsZero() {
		t.short = now
	}
	f.mark(ctx, exchange.WaitFloat)
	if now.Sub(t.short) >= floatQuestions {
		f.commands.park(ctx, ReasonMomoFloat, nil)
	}
	f.pause(ctx, slower(ctx, floatPause, t.short), "Check whether there is enough float", func() bool { return f.floated || f.commands.hasDecision() })
	if f.commands.hasDecision() {
		f.commands.unpark(ctx, WaitsForMomo)
	}
}

// awaitBreaker waits until a payout may be tried after the mobile money operator refused our credential: until a signal that
// the breaker was closed, or an operator's command. While another payout is on trial, it checks by itself.
func (f *offRamp) awaitBreaker(ctx workflow.Context, r MomoPayoutResult) {
	ready := func() bool { return f.floated || f.commands.hasDecision() }
	if r.Class == exchange.ClassTrial {
		f.commands.unpark(ctx, WaitsForMomo)
		f.mark(ctx, exchange.WaitSuspended)
		f.pause(ctx, trialPause, "Check whether the payout on trial was accepted", ready)
		return
	}
	var cause error
	for {
		f.commands.park(ctx, Reason(r.Reason), cause)
		detail := exchange.WaitSuspended
		if r.Refused {
			detail = exchange.WaitOperator
		}
		f.mark(ctx, detail)
		f.until(ctx, ready)
		if !f.commands.hasDecision() {
			break
		}
		d := f.commands.take()
		if d.verb != activities.VerbRefund {
			break
		}
		if cause = f.refund(ctx, d.proof, r.Reason); cause == nil {
			return
		}
	}
	f.commands.unpark(ctx, WaitsForMomo)
}

// awaitClaim waits until it is known whether a refused payout was made after all; nothing else is sent before. It checks by
// itself, because the check of the late evidence does not notify this flow.
func (f *offRamp) awaitClaim(ctx workflow.Context, t *payoutTries) {
	if t.claimed.IsZero() {
		t.claimed = workflow.Now(ctx)
	}
	var cause error
	for {
		f.commands.park(ctx, ReasonMomoClaimed, cause)
		f.mark(ctx, exchange.WaitOperator)
		f.pause(ctx, slower(ctx, refundGlance, t.claimed), "Check whether the claim is settled", f.commands.hasDecision)
		if !f.commands.hasDecision() {
			break
		}
		d := f.commands.take()
		switch d.verb {
		case activities.VerbRefund:
			cause = f.refund(ctx, d.proof, string(ReasonMomoClaimed))
		case activities.VerbResolve:
			cause = f.settleClaim(ctx, d.proof)
		default:
			cause = nil
		}
		if cause == nil {
			break
		}
	}
	f.commands.unpark(ctx, WaitsForMomo)
}

// settleClaim completes the order by the receipt of the payout that was recorded as refused. The next try finds it paid. It
// names no attempt: the flow may have been started again, and then doesn't know which one was the last.
func (f *offRamp) settleClaim(ctx workflow.Context, proof activities.Proof) error {
	in := activities.SettlePayoutInput{Object: exchange.PayoutOfOrder(f.order.OrderID), Proof: proof}
	err := do(ctx, rail, "Settle the payout", payouts.SettlePayout, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the payout could not be settled", "error", err)
	}
	return err
}

// eastAfrica is the operator's offset from UTC; there is no daylight saving time.
const eastAfrica = 3 * time.Hour

// nextDay is one minute past the start of the operator's next day: the database's clock may be slow, and at midnight it
// would count another payout for the day before.
func nextDay(now time.Time) time.Time {
	return now.Add(eastAfrica).Truncate(24 * time.Hour).Add(24*time.Hour + time.Minute - eastAfrica)
}

// awaitDay waits for the operator's next day, when the payee's daily limit starts again. If the limit refuses that payout
// too, the flow parks.
func (f *offRamp) awaitDay(ctx workflow.Context) {
	f.mark(ctx, exchange.WaitPayeeDay)
	now := workflow.Now(ctx)
	tomorrow := nextDay(now)
	f.tell(ctx, "the next day: the mobile money operator's daily limit for this payee is reached", tomorrow)
	f.pause(ctx, tomorrow.Sub(now), "Wait for the operator's next day", func() bool { return false })
}

// momoPayout runs the child that makes one payout. Commands are forwarded to it. Callbacks go to it directly: to forward
// them from here would cost this flow two tasks each.
func (f *offRamp) momoPayout(ctx workflow.Context, try int) (MomoPayoutResult, error) {
	of := exchange.PayoutOfOrder(f.order.OrderID)
	in := MomoPayoutInput{Object: of, OrderID: f.order.OrderID, Try: try, Home: MomoPayoutID(of)}
	c := child{
		id: MomoPayoutID(of), summary: "Pay out " + f.order.Fiat.String() + " " + string(f.order.Fiat.Asset()),
		priority: fairness(priorityOrder, f.order.MerchantID), shown: attributes(StagePayout, WaitsForMomo),
	}
	return runWatched(ctx, c, MomoPayout, in, f.until, func(running bool) {
		f.paying, f.commands.pass = running, nil
		if running {
			f.commands.pass = f.passCommand
		}
	})
}

// passCommand forwards an operator's command to the payout's flow.
func (f *offRamp) passCommand(ctx workflow.Context, name string, ref CommandRef) error {
	return workflow.SignalExternalWorkflow(ctx, MomoPayoutID(exchange.PayoutOfOrder(f.order.OrderID)), "", name, ref).Get(ctx, nil)
}

// passCallback forwards callbacks of attempts whose home is this flow, as earlier builds made them, to the payout's flow. A
// callback that comes while no payout runs is stored, and the next payout or the check of late evidence finds it.
func (f *offRamp) passCallback(ctx workflow.Context, ref CallbackRef) {
	if !f.paying {
		return
	}
	err := workflow.SignalExternalWorkflow(ctx, MomoPayoutID(exchange.PayoutOfOrder(f.order.OrderID)), "", SignalCallback, ref).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("a callback could not be forwarded to the payout's flow", "error", err)
	}
}
