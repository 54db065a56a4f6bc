package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// Limits of paying the shillings out.
const (
	busyPause     = 5 * time.Minute // after the operator said that it is busy
	maxBusy       = 3               // payouts that we make again by ourselves
	floatPause    = 5 * time.Minute // between looks whether the float is large enough
	floatPatience = 30 * time.Minute
	trialPause    = 2 * time.Minute // as long as a payout on trial holds the next one up
)

// payOut has the shillings paid out. It ends when the order is completed, or failed with its refund opened. Another
// payout is made only after the one before was definitely refused, so that no two can pay.
func (f *offRamp) payOut(ctx workflow.Context) {
	f.moved(ctx, StagePayout, WaitsForMomo, "the operator")
	t := &payoutTries{next: 1}
	for f.order.Status == exchange.OrderProcessing {
		f.floated = false // what is said from here on may be of float that the try did not see
		result, err := f.momoPayout(ctx, t.next)
		switch {
		case err != nil:
			f.parked(ctx, ReasonStepFailed, err)
			f.desk.unpark(ctx, WaitsForMomo)
		case result.Completed:
			f.desk.unpark(ctx, WaitsForNobody)
			f.order.OrderState = activities.OrderState{OrderID: f.order.OrderID, Status: exchange.OrderCompleted, Detail: exchange.WaitNothing}
		default:
			f.refusedPayout(ctx, result, t)
		}
	}
}

// payoutTries counts the payouts of an order.
type payoutTries struct {
	next  int
	busy  int       // made again because the operator was busy
	short time.Time // since when the float is too small; zero while it is not
	// claimed is since when a payout that was refused is said to have been made; zero while nobody says so.
	claimed time.Time
	full    bool // the payee could get no more the last time
}

// refusedPayout draws the consequence of a payout that was not made.
func (f *offRamp) refusedPayout(ctx workflow.Context, r MomoPayoutResult, t *payoutTries) {
	short := Reason(r.Reason) == ReasonMomoFloat || (r.Refused && r.Class == activities.ClassFloat)
	if r.Refused {
		t.next++
	}
	if !short {
		t.short = time.Time{}
	}
	claimed, full := Reason(r.Reason) == ReasonMomoClaimed, r.Class == activities.ClassPayeeDay && !t.full
	if t.full = full; !claimed {
		t.claimed = time.Time{}
	}
	switch {
	case Reason(r.Reason) == ReasonDepositScreening:
		f.clearedAgain(ctx, StagePayout, WaitsForMomo, "the operator")
	case claimed:
		f.awaitClaim(ctx, t)
	case full:
		f.awaitDay(ctx)
	case r.Refused && (r.Class == activities.ClassPayee || r.Class == activities.ClassDeclared):
		f.must(ctx, "Open the refund", func() error { return f.refund(ctx, activities.Proof{}, "payout refused: "+r.Code) })
	case r.Refused && r.Class == activities.ClassBusy && t.busy < maxBusy:
		t.busy++
		f.pause(ctx, busyPause, "Pay again", func() bool { return false })
	case short:
		f.awaitFloat(ctx, t)
	case Reason(r.Reason) == ReasonMomoSuspended, Reason(r.Reason) == ReasonMomoCredential:
		f.awaitBreaker(ctx, r)
	default:
		if !f.refused(ctx, Reason(r.Reason), nil) {
			f.desk.unpark(ctx, WaitsForMomo)
		}
	}
}

// awaitFloat waits until it is worth to try again, and tells a person after a while.
func (f *offRamp) awaitFloat(ctx workflow.Context, t *payoutTries) {
	now := workflow.Now(ctx)
	if t.short.IsZero() {
		t.short = now
	}
	f.mark(ctx, exchange.WaitFloat)
	if now.Sub(t.short) >= floatPatience {
		f.desk.park(ctx, ReasonMomoFloat, nil)
	}
	f.pause(ctx, slower(ctx, floatPause, t.short), "Look whether the float is large enough", func() bool { return f.floated || f.desk.hasDecision() })
	if f.desk.hasDecision() {
		f.desk.unpark(ctx, WaitsForMomo)
	}
}

// awaitBreaker waits until a payout may be tried after the operator refused our credential: until the flow is told that the
// breaker was closed, or for an operator. While another payout is on trial it looks by itself.
func (f *offRamp) awaitBreaker(ctx workflow.Context, r MomoPayoutResult) {
	ready := func() bool { return f.floated || f.desk.hasDecision() }
	if r.Class == activities.ClassTrial {
		f.desk.unpark(ctx, WaitsForMomo)
		f.mark(ctx, exchange.WaitSuspended)
		f.pause(ctx, trialPause, "See whether the payout on trial was taken", ready)
		return
	}
	var cause error
	for {
		f.desk.park(ctx, Reason(r.Reason), cause)
		detail := exchange.WaitSuspended
		if r.Refused {
			detail = exchange.WaitOperator
		}
		f.mark(ctx, detail)
		f.until(ctx, ready)
		if !f.desk.hasDecision() {
			break
		}
		d := f.desk.take()
		if d.verb != activities.VerbRefund {
			break
		}
		if cause = f.refund(ctx, d.proof, r.Reason); cause == nil {
			return
		}
	}
	f.desk.unpark(ctx, WaitsForMomo)
}

// awaitClaim waits until it is known whether a payout that was refused was made after all: nothing else is sent before.
// It looks by itself, because the look at the late word ends without a word to this flow.
func (f *offRamp) awaitClaim(ctx workflow.Context, t *payoutTries) {
	if t.claimed.IsZero() {
		t.claimed = workflow.Now(ctx)
	}
	var cause error
	for {
		f.desk.park(ctx, ReasonMomoClaimed, cause)
		f.mark(ctx, exchange.WaitOperator)
		f.pause(ctx, slower(ctx, refundGlance, t.claimed), "See whether the claim is settled", f.desk.hasDecision)
		if !f.desk.hasDecision() {
			break
		}
		d := f.desk.take()
		switch d.verb {
		case activities.VerbRefund:
			cause = f.refund(ctx, d.proof, string(ReasonMomoClaimed))
		case activities.VerbResolve:
			cause = f.settleClaim(ctx, t.next-1, d.proof)
		default:
			cause = nil
		}
		if cause == nil {
			break
		}
	}
	f.desk.unpark(ctx, WaitsForMomo)
}

// settleClaim completes the order by the receipt of the payout that was taken for refused. The next try finds it paid.
func (f *offRamp) settleClaim(ctx workflow.Context, try int, proof activities.Proof) error {
	in := activities.SettlePayoutInput{OrderID: f.order.OrderID, AttemptID: activities.PayoutID(f.order.OrderID, try), Proof: proof}
	err := do(ctx, rail, "Settle the payout", payouts.SettlePayout, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the payout was not settled", "error", err)
	}
	return err
}

// eastAfrica is the operator's time, which has no other in summer.
const eastAfrica = 3 * time.Hour

// awaitDay waits for the operator's next day, on which the payee can get more. Who can get no more even then is a
// person's business.
func (f *offRamp) awaitDay(ctx workflow.Context) {
	f.mark(ctx, exchange.WaitPayeeDay)
	now := workflow.Now(ctx)
	tomorrow := now.Add(eastAfrica).Truncate(24 * time.Hour).Add(24*time.Hour - eastAfrica)
	f.tell(ctx, "the next day: the operator pays this payee no more today", tomorrow)
	f.pause(ctx, tomorrow.Sub(now), "Pay on the next day", func() bool { return false })
}

// momoPayout runs the child that carries one payout out. Commands that come meanwhile are its, and callbacks come to it by
// themselves: passed on from here, each would cost this flow two tasks.
func (f *offRamp) momoPayout(ctx workflow.Context, try int) (MomoPayoutResult, error) {
	in := MomoPayoutInput{OrderID: f.order.OrderID, Try: try, Home: MomoPayoutID(f.order.OrderID)}
	c := child{
		id: MomoPayoutID(f.order.OrderID), summary: "Pay " + f.order.Fiat.String() + " " + string(f.order.Fiat.Asset()) + " out",
		priority: fairness(priorityOrder, f.order.MerchantID), shown: attributes(StagePayout, WaitsForMomo),
	}
	return runWatched(ctx, c, MomoPayout, in, f.until, func(running bool) {
		f.paying, f.desk.pass = running, nil
		if running {
			f.desk.pass = f.passCommand
		}
	})
}

// passCommand hands an operator's command on to the payout's flow.
func (f *offRamp) passCommand(ctx workflow.Context, name string, ref CommandRef) error {
	return workflow.SignalExternalWorkflow(ctx, MomoPayoutID(f.order.OrderID), "", name, ref).Get(ctx, nil)
}

// passCallback hands a callback of an attempt whose home is this flow, as an earlier build made them, on to the payout's
// flow. One that comes while none is at work is stored like any other and found by the next, or by the look at a late word.
func (f *offRamp) passCallback(ctx workflow.Context, ref CallbackRef) {
	if !f.paying {
		return
	}
	err := workflow.SignalExternalWorkflow(ctx, MomoPayoutID(f.order.OrderID), "", SignalCallback, ref).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("a callback was not passed on", "error", err)
	}
}
