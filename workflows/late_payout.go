package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// LatePayoutSummary is the one line that the Web UI shows of such a look.
const LatePayoutSummary = "Look at a late word about a payout"

// LatePayoutAttributes are the search attributes with which a look at a late payout starts.
func LatePayoutAttributes() temporal.SearchAttributes { return LatePaymentAttributes() }

// LatePayoutInput names the payout, its refund and its order. Without a refund it is the order's own payout.
type LatePayoutInput struct {
	AttemptID uuid.UUID `json:"attempt_id"`
	RefundID  uuid.UUID `json:"refund_id"`
	OrderID   uuid.UUID `json:"order_id"`
}

// ofOrder tells whether the payout pays an order out.
func (in LatePayoutInput) ofOrder() bool { return in.RefundID == uuid.Nil }

// LatePayoutResult is how the look ended.
type LatePayoutResult struct {
	Outcome string `json:"outcome"` // "clean", "accounted" or "resolved"
}

// LatePayout looks at a payout when something comes about it and its own flow is over, or has taken it for settled.
// The operator is known to report success after failure, and another payout may have been made meanwhile. What
// two voices agree on is booked, as paid twice where that is so, and a person decides about it. A claim that
// nobody else confirms or denies is shown to a person, and asked about for as long as it takes.
func LatePayout(ctx workflow.Context, in LatePayoutInput) (LatePayoutResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &latePayout{in: in}
	if err := f.handlers(ctx); err != nil {
		return LatePayoutResult{}, err
	}
	return attended(ctx, f.desk, f.run)
}

type latePayout struct {
	flow
	in        LatePayoutInput
	woken     bool // something came
	step      activities.LatePayoutStep
	questions int
	askAt     time.Time
	began     time.Time
}

func (f *latePayout) handlers(ctx workflow.Context) error {
	about := "payout " + f.in.AttemptID.String() + " of refund " + f.in.RefundID.String()
	if f.in.ofOrder() {
		about = "payout " + f.in.AttemptID.String() + " of order " + f.in.OrderID.String()
	}
	err := f.reach(ctx, LatePayoutID(f.in.AttemptID), about, func() []activities.ObjectRef {
		objects := []activities.ObjectRef{{Type: activities.ObjectOrder, ID: f.in.OrderID}}
		if f.step.Exception != uuid.Nil {
			objects = append(objects, activities.ObjectRef{Type: activities.ObjectException, ID: f.step.Exception})
		}
		return objects
	})
	woken(ctx, "callbacks", SignalCallback, func(workflow.Context) { f.woken = true })
	return err
}

func (f *latePayout) run(ctx workflow.Context) (LatePayoutResult, error) {
	f.began = workflow.Now(ctx)
	c := card{title: "Looking at a late word about a payout"}
	c.add("Payout", f.in.AttemptID.String())
	if !f.in.ofOrder() {
		c.add("Refund", f.in.RefundID.String())
	}
	c.add("Order", f.in.OrderID.String())
	c.add("Waits for", "the operator's word")
	describe(ctx, c)
	outcome := LateClean
	for again := true; again; again = f.heard(ctx) {
		if f.look(ctx) {
			outcome = f.settle(ctx)
		}
	}
	f.desk.unpark(ctx, WaitsForNobody)
	show(ctx, AttrStage.ValueSet(StageDone), AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(WaitsForNobody))
	return LatePayoutResult{Outcome: outcome}, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// heard tells whether something came in last, which nobody would look at after the end.
func (f *latePayout) heard(ctx workflow.Context) bool {
	letOthersRun(ctx)
	return f.woken
}

// look asks until the payout is proven to have been made, which it reports, or nobody claims it any more.
func (f *latePayout) look(ctx workflow.Context) bool {
	for {
		f.woken = false
		known := f.check(ctx)
		switch {
		case known && f.step.State == activities.RefundPaid:
			return true
		case known && f.step.State != activities.RefundPending:
			return false
		case f.questions > payoutQuestions && f.desk.reason == "":
			f.desk.park(ctx, f.lateClaim(), nil)
		}
		await(ctx, max(f.askAt.Sub(workflow.Now(ctx)), time.Second), "Ask the operator what became of the payout", func() bool {
			return f.woken || f.desk.hasDecision()
		})
		if f.desk.hasDecision() && f.vouched(ctx) {
			return true
		}
	}
}

// check looks at what is known, and asks the operator when it is time.
func (f *latePayout) check(ctx workflow.Context) bool {
	now := workflow.Now(ctx)
	ask := f.questions == 0 || due(f.askAt, now)
	if ask {
		f.questions++
		f.askAt = now.Add(payoutLookPause)
		if f.questions > payoutQuestions {
			f.askAt = now.Add(slower(ctx, payoutSlowLook, f.began))
		}
	}
	step, err := f.see(ctx, ask)
	if err != nil {
		if !passing(err) {
			f.desk.park(ctx, ReasonStepFailed, err)
		}
		return false
	}
	f.step = step
	if f.desk.reason == ReasonStepFailed {
		f.desk.unpark(ctx, WaitsForMomo)
	}
	return true
}

// see has the activity look that belongs to what the payout pays.
func (f *latePayout) see(ctx workflow.Context, ask bool) (activities.LatePayoutStep, error) {
	const summary = "See whether the payout was made"
	if f.in.ofOrder() {
		in := activities.CheckPayoutInput{OrderID: f.in.OrderID, AttemptID: f.in.AttemptID, Ask: ask, Questions: f.questions}
		return step(ctx, look, summary, payouts.CheckLateOrderPayout, in)
	}
	in := activities.CheckRefundInput{RefundID: f.in.RefundID, AttemptID: f.in.AttemptID, Ask: ask, Questions: f.questions}
	return step(ctx, look, summary, refunds.CheckLatePayout, in)
}

// prove books the payout by the receipt that a person found.
func (f *latePayout) prove(ctx workflow.Context, proof activities.Proof) (activities.LatePayoutStep, error) {
	const summary = "Book the payout"
	if f.in.ofOrder() {
		in := activities.SettlePayoutInput{OrderID: f.in.OrderID, AttemptID: f.in.AttemptID, Proof: proof}
		return step(ctx, rail, summary, payouts.SettleLateOrderPayout, in)
	}
	in := activities.SettleRefundInput{RefundID: f.in.RefundID, AttemptID: f.in.AttemptID, Proof: proof}
	return step(ctx, rail, summary, refunds.SettleLatePayout, in)
}

// lateClaim is the reason to park while one voice alone says that the payout was made.
func (f *latePayout) lateClaim() Reason {
	if f.in.ofOrder() {
		return ReasonMomoLate
	}
	return ReasonRefundLate
}

// double is the reason to park because the payout was made beside another payment.
func (f *latePayout) double() Reason {
	if f.in.ofOrder() {
		return ReasonMomoTwice
	}
	return ReasonRefundTwice
}

// vouched obeys an operator: a resolve names the receipt of the payout, a retry asks at once.
func (f *latePayout) vouched(ctx workflow.Context) bool {
	d := f.desk.take()
	f.askAt = workflow.Now(ctx)
	if d.verb != activities.VerbResolve {
		return false
	}
	step, err := f.prove(ctx, d.proof)
	if err != nil {
		workflow.GetLogger(ctx).Error("the payout was not booked", "error", err)
		f.desk.park(ctx, f.lateClaim(), err)
		return false
	}
	f.step = step
	return true
}

// settle has a person decide about money that was paid twice. While the crypto of an order is still here, the payout can
// stand instead of the refund; the order's own flow asks for that.
func (f *latePayout) settle(ctx workflow.Context) string {
	f.desk.unpark(ctx, WaitsForNobody)
	for !f.step.Elsewhere && f.step.Exception != uuid.Nil && f.step.Undecided {
		d := f.parked(ctx, f.double(), nil)
		in := activities.ExceptionInput{ExceptionID: f.step.Exception, Proof: d.proof}
		err := do(ctx, rail, "Settle what was paid twice", refunds.ResolveException, in)
		if err == nil {
			f.step.Undecided = false
			return LateResolved
		}
		workflow.GetLogger(ctx).Error("the exception was not resolved", "error", err)
		f.desk.park(ctx, f.double(), err)
	}
	return LateAccounted
}
