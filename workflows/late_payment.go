package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// How the watch for a late payment can end.
const (
	LateClean     = "clean"     // no money came
	LateAccounted = "accounted" // the money is already accounted for
	LateRefunded  = "refunded"
	LateResolved  = "resolved"
)

// watchFor is how long late money is looked for: the operator's statement reaches back two days.
const watchFor = 24 * time.Hour

// lateLooks are the pauses between looks; the last one repeats.
var lateLooks = []time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
}

// LatePayment watches an attempt whose order, or other object, has ended. The operator sometimes reports success after failure. Money that
// arrives then becomes an exception. It is refunded by rule when the customer had cancelled the order; otherwise an operator
// decides about it. The flow pays the refund. It never changes the order.
func LatePayment(ctx workflow.Context, in LatePaymentInput) (LatePaymentResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &latePayment{in: in}
	if err := f.handlers(ctx); err != nil {
		return LatePaymentResult{}, err
	}
	return attended(ctx, f.commands, f.run)
}

type latePayment struct {
	flow
	in        LatePaymentInput
	callbacks []CallbackRef
	found     activities.Confirmed
	looks     int
}

func (f *latePayment) handlers(ctx workflow.Context) error {
	f.arrived, f.attend = func() bool { return len(f.callbacks) > 0 }, f.passCallbacks
	err := f.reach(ctx, LatePaymentID(f.in.AttemptID), "payment attempt "+f.in.AttemptID.String(), func() []activities.ObjectRef {
		objects := []activities.ObjectRef{}
		if f.found.Exception != uuid.Nil {
			objects = append(objects, activities.ObjectRef{Type: activities.ObjectException, ID: f.found.Exception})
		}
		if of, is := f.in.another(); is {
			return append(objects, activities.ObjectRef{Type: string(of.Type), ID: of.ID})
		}
		if f.in.OrderID == uuid.Nil { // known after the first look
			return append(objects, activities.ObjectRef{Type: activities.ObjectOrder, ID: f.found.Order.OrderID})
		}
		return append(objects, activities.ObjectRef{Type: activities.ObjectOrder, ID: f.in.OrderID})
	})
	f.hearsOfFloat()
	signal(f.commands.ears, "callbacks", SignalCallback, func(_ workflow.Context, ref CallbackRef) { f.callbacks = append(f.callbacks, ref) })
	return err
}

func (f *latePayment) run(ctx workflow.Context) (LatePaymentResult, error) {
	f.commands.describe(ctx, f.card())
	outcome := LateClean
	for again := true; again && outcome == LateClean; again = f.oneMore(ctx) {
		if f.watch(ctx) {
			outcome = f.settle(ctx)
		}
	}
	show(ctx, AttrStage.ValueSet(StageDone), AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(WaitsForNothing))
	return LatePaymentResult{Outcome: outcome}, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// oneMore reports whether a callback arrived that would be lost when the flow ends.
func (f *latePayment) oneMore(ctx workflow.Context) bool {
	letOthersRun(ctx)
	return len(f.callbacks) > 0
}

// watch looks for the money and reports whether it came. No money comes from an attempt that definitely failed, or that
// failed and had no further evidence for the whole time. If the outcome stays unknown, the flow parks and keeps watching.
func (f *latePayment) watch(ctx workflow.Context) bool {
	end := workflow.Now(ctx).Add(watchFor)
	var attestation activities.Proof // of an operator who found the payment
	resolved := false
	for {
		f.callbacks = nil
		known := f.look(ctx, attestation)
		attestation = activities.Proof{}
		failed := f.found.State == activities.PaymentFailed || f.found.State == activities.PaymentDeclined
		over := !workflow.Now(ctx).Before(end)
		switch {
		case known && f.found.State == activities.PaymentPaid:
			f.commands.unpark(ctx, WaitsForNothing)
			return true
		case len(f.callbacks) > 0:
			continue
		case known && failed && (!f.found.Soft || over), known && resolved && !claimed(f.found.State):
			f.commands.unpark(ctx, WaitsForNothing)
			return false
		case over && (known || f.commands.reason == ""): // also when every look failed
			f.commands.park(ctx, openReason(f.found.State), nil)
		}
		f.wait(ctx, end)
		if f.commands.hasDecision() {
			d := f.commands.take()
			attestation, resolved = d.proof, d.verb == activities.VerbResolve
		}
	}
}

// look checks the payment and reports whether it got an answer.
func (f *latePayment) look(ctx workflow.Context, attestation activities.Proof) bool {
	f.looks++
	in := activities.ConfirmInput{AttemptID: f.in.AttemptID, Thorough: f.looks > 2, Attestation: attestation}
	c, err := step(ctx, look, "Check whether late money came", momo.ConfirmPayment, in)
	if err != nil {
		if !passing(err) {
			f.commands.park(ctx, ReasonStepFailed, err)
		}
		return false
	}
	f.found = c
	if f.commands.reason == ReasonStepFailed {
		f.commands.unpark(ctx, WaitsForMomo)
	}
	return true
}

func (f *latePayment) wait(ctx workflow.Context, end time.Time) {
	pause := slower(ctx, lateLooks[min(f.looks-1, len(lateLooks)-1)], end)
	await(ctx, pause, "Look for late money", func() bool {
		return len(f.callbacks) > 0 || f.commands.hasDecision()
	})
}

// settle accounts for money that came. A refund that is owed was opened by rule, or by an earlier run of this flow.
func (f *latePayment) settle(ctx workflow.Context) string {
	if f.found.Owed {
		f.giveBack(ctx, f.found.RefundID)
		return LateRefunded
	}
	of, another := f.in.another()
	over := exchange.OTCMachine.Terminal(exchange.OTCStatus(f.found.Order.Status))
	if of.Type == exchange.MomoDeposit && (over || f.found.Exception != uuid.Nil) {
		return LateAccounted // its flow has ended, or officers decide: the deposit has no order whose refund could be paid
	}
	if f.found.Exception == uuid.Nil && (another || f.found.Order.Status == exchange.OrderProcessing) {
		f.wakeHome(ctx)
		return LateAccounted
	}
	var trouble error
	for f.found.Exception != uuid.Nil && f.found.Undecided {
		d := f.parked(ctx, ReasonLateMoney, trouble)
		f.commands.unpark(ctx, WaitsForMomo)
		in := activities.ExceptionInput{ExceptionID: f.found.Exception, Proof: d.proof}
		if d.verb == activities.VerbRefund {
			if trouble = f.refund(ctx, in); trouble == nil {
				return LateRefunded
			}
			continue
		}
		trouble = do(ctx, rail, "Leave the money as it is", refunds.ResolveException, in)
		if trouble == nil {
			return LateResolved
		}
		workflow.GetLogger(ctx).Error("the payment exception could not be resolved", "error", trouble)
	}
	return LateAccounted
}

// refund opens the refund of the exception and pays it.
func (f *latePayment) refund(ctx workflow.Context, in activities.ExceptionInput) error {
	opened, err := step(ctx, rail, "Open the refund", refunds.RefundException, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the refund could not be opened", "error", err)
		return err
	}
	f.giveBack(ctx, opened.RefundID)
	return nil
}

// giveBack pays a refund.
func (f *latePayment) giveBack(ctx workflow.Context, refundID uuid.UUID) {
	show(ctx, AttrStage.ValueSet(StageRefund))
	f.refundTries(refundID, f.found.Order.OrderID, uuid.Nil).run(ctx)
}

// wakeHome signals the flow of the order, or of the other object, that the attempt paid it while it was still waiting. If that
// flow is gone, this one parks until it is there again: somebody has paid, and nobody would carry the object on. An order that
// its flow has carried on meanwhile needs nobody any more.
func (f *latePayment) wakeHome(ctx workflow.Context) {
	home := f.found.Home
	if home == "" {
		home = OnRampID(f.found.Order.OrderID)
	}
	began := workflow.Now(ctx)
	for {
		ref := CallbackRef{AttemptID: f.in.AttemptID}
		err := workflow.SignalExternalWorkflow(ctx, home, "", SignalCallback, ref).Get(ctx, nil)
		if err == nil {
			f.commands.unpark(ctx, WaitsForNothing)
			return
		}
		f.callbacks = nil
		if _, another := f.in.another(); !another && f.look(ctx, activities.Proof{}) && f.found.Order.Status != exchange.OrderProcessing {
			f.commands.unpark(ctx, WaitsForNothing)
			return
		}
		f.commands.park(ctx, ReasonFlowGone, err)
		waiting(f.until).pause(ctx, slower(ctx, homePause, began), "Notify the flow that waits for the payment again", f.commands.hasDecision)
		if f.commands.hasDecision() {
			f.commands.take()
		}
	}
}

// homePause is between tries to notify the flow of an object that was paid. A missing one is started again meanwhile.
const homePause = 5 * time.Minute

// passCallbacks passes callbacks on to the refund.
func (f *latePayment) passCallbacks(ctx workflow.Context) {
	refs := f.callbacks
	f.callbacks = nil
	for _, ref := range refs {
		if ref.AttemptID != f.in.AttemptID {
			f.wakePayout(ctx, ref)
		}
	}
}

func (f *latePayment) card() card {
	c := card{title: "Watching for late money"}
	c.add("Attempt", f.in.AttemptID.String())
	c.add("Waits for", "the mobile money operator")
	return c
}
