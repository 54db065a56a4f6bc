package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// How the watch over a late payment can end.
const (
	LateClean     = "clean"     // nothing came
	LateAccounted = "accounted" // the money has its place already
	LateRefunded  = "refunded"
	LateResolved  = "resolved"
)

// watchFor is how long late money is looked for: the operator's statement reaches back two days.
const watchFor = 24 * time.Hour

// lateLooks are the pauses between looks; the last one repeats.
var lateLooks = []time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
}

// LatePayment watches an attempt whose order is over. The operator is known to report success after
// failure, and money that arrives then belongs to somebody: it becomes an exception, about which a
// person decides. It never touches the order.
func LatePayment(ctx workflow.Context, in LatePaymentInput) (LatePaymentResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &latePayment{in: in}
	if err := f.handlers(ctx); err != nil {
		return LatePaymentResult{}, err
	}
	return attended(ctx, f.desk, f.run)
}

type latePayment struct {
	flow
	in        LatePaymentInput
	callbacks []CallbackRef
	found     activities.Confirmed
	back      *payback
	looks     int
}

func (f *latePayment) handlers(ctx workflow.Context) error {
	f.arrived, f.attend = func() bool { return len(f.callbacks) > 0 }, f.passCallbacks
	err := f.reach(ctx, LatePaymentID(f.in.AttemptID), "payment attempt "+f.in.AttemptID.String(), func() []activities.ObjectRef {
		objects := []activities.ObjectRef{}
		if f.found.Exception != uuid.Nil {
			objects = append(objects, activities.ObjectRef{Type: activities.ObjectException, ID: f.found.Exception})
		}
		if f.in.OrderID == uuid.Nil { // started without it: the first look tells
			return append(objects, activities.ObjectRef{Type: activities.ObjectOrder, ID: f.found.Order.OrderID})
		}
		return append(objects, activities.ObjectRef{Type: activities.ObjectOrder, ID: f.in.OrderID})
	})
	signal(ctx, "callbacks", SignalCallback, func(_ workflow.Context, ref CallbackRef) { f.callbacks = append(f.callbacks, ref) })
	return err
}

func (f *latePayment) run(ctx workflow.Context) (LatePaymentResult, error) {
	describe(ctx, f.card())
	outcome := LateClean
	for again := true; again && outcome == LateClean; again = f.heard(ctx) {
		if f.watch(ctx) {
			outcome = f.settle(ctx)
		}
	}
	show(ctx, AttrStage.ValueSet(StageDone), AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(WaitsForNobody))
	return LatePaymentResult{Outcome: outcome}, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// heard tells whether a callback came in last, which nobody would look at after the end.
func (f *latePayment) heard(ctx workflow.Context) bool {
	letOthersRun(ctx)
	return len(f.callbacks) > 0
}

// watch looks for the money and tells whether it came. An attempt that failed for certain, or failed and
// stayed silent for the whole time, brings none; one of which nobody knows is shown to a person and
// watched on.
func (f *latePayment) watch(ctx workflow.Context) bool {
	end := workflow.Now(ctx).Add(watchFor)
	var vouch activities.Proof // of an operator who found the payment
	resolved := false
	for {
		f.callbacks = nil
		known := f.look(ctx, vouch)
		vouch = activities.Proof{}
		failed := f.found.State == activities.PaymentFailed || f.found.State == activities.PaymentDeclined
		over := !workflow.Now(ctx).Before(end)
		switch {
		case known && f.found.State == activities.PaymentPaid:
			f.desk.unpark(ctx, WaitsForNobody)
			return true
		case len(f.callbacks) > 0:
			continue
		case known && failed && (!f.found.Soft || over), known && resolved && !claimed(f.found.State):
			f.desk.unpark(ctx, WaitsForNobody)
			return false
		case over && (known || f.desk.reason == ""): // also when the looks themselves get no answer
			f.desk.park(ctx, openReason(f.found.State), nil)
		}
		f.wait(ctx, end)
		if f.desk.hasDecision() {
			d := f.desk.take()
			vouch, resolved = d.proof, d.verb == activities.VerbResolve
		}
	}
}

// look reports whether it found anything out.
func (f *latePayment) look(ctx workflow.Context, vouch activities.Proof) bool {
	f.looks++
	in := activities.ConfirmInput{AttemptID: f.in.AttemptID, Thorough: f.looks > 2, Vouch: vouch}
	c, err := step(ctx, look, "See whether late money came", momo.ConfirmPayment, in)
	if err != nil {
		if !passing(err) {
			f.desk.park(ctx, ReasonStepFailed, err)
		}
		return false
	}
	f.found = c
	if f.desk.reason == ReasonStepFailed {
		f.desk.unpark(ctx, WaitsForMomo)
	}
	return true
}

func (f *latePayment) wait(ctx workflow.Context, end time.Time) {
	pause := slower(ctx, lateLooks[min(f.looks-1, len(lateLooks)-1)], end)
	await(ctx, pause, "Look for late money", func() bool {
		return len(f.callbacks) > 0 || f.desk.hasDecision()
	})
}

// settle finds a place for money that came.
func (f *latePayment) settle(ctx workflow.Context) string {
	if f.found.Exception == uuid.Nil && f.found.Order.Status == exchange.OrderProcessing {
		f.wakeOrder(ctx)
		return LateAccounted
	}
	var trouble error
	for f.found.Exception != uuid.Nil && f.found.Undecided {
		d := f.parked(ctx, ReasonLateMoney, trouble)
		f.desk.unpark(ctx, WaitsForMomo)
		in := activities.ExceptionInput{ExceptionID: f.found.Exception, Proof: d.proof}
		if d.verb == activities.VerbRefund {
			if trouble = f.refund(ctx, in); trouble == nil {
				return LateRefunded
			}
			continue
		}
		trouble = do(ctx, rail, "Keep the money as it is", refunds.ResolveException, in)
		if trouble == nil {
			return LateResolved
		}
		workflow.GetLogger(ctx).Error("the exception was not resolved", "error", trouble)
	}
	return LateAccounted
}

// refund opens the refund of the exception and sees it paid.
func (f *latePayment) refund(ctx workflow.Context, in activities.ExceptionInput) error {
	opened, err := step(ctx, rail, "Open the refund", refunds.RefundException, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the refund was not opened", "error", err)
		return err
	}
	show(ctx, AttrStage.ValueSet(StageRefund))
	f.back = &payback{refundID: opened.RefundID, orderID: f.found.Order.OrderID, home: f.id, desk: f.desk, until: f.until}
	f.back.run(ctx)
	return nil
}

// wakeOrder tells the order's own flow about a payment that it does not know of yet: the attempt turned
// out to pay an order that was still waiting.
func (f *latePayment) wakeOrder(ctx workflow.Context) {
	ref := CallbackRef{AttemptID: f.in.AttemptID}
	err := workflow.SignalExternalWorkflow(ctx, OnRampID(f.found.Order.OrderID), "", SignalCallback, ref).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("the order's flow was not woken", "error", err)
	}
}

// passCallbacks passes callbacks on to the refund.
func (f *latePayment) passCallbacks(ctx workflow.Context) {
	refs := f.callbacks
	f.callbacks = nil
	for _, ref := range refs {
		if f.back != nil && ref.AttemptID != f.in.AttemptID {
			f.back.wake(ctx, ref)
		}
	}
}

func (f *latePayment) card() card {
	c := card{title: "Watching for late money"}
	c.add("Attempt", f.in.AttemptID.String())
	c.add("Waits for", "the operator's word")
	return c
}
