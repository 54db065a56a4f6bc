package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// LatePayoutSummary is the summary of the flow in the Web UI.
const LatePayoutSummary = "Check late evidence about a payout"

// LatePayoutAttributes are the search attributes with which a check of a late payout starts.
func LatePayoutAttributes() temporal.SearchAttributes { return LatePaymentAttributes() }

// LatePayoutInput names the payout, and its refund and its order or its withdrawal. The order's own payout has no refund.
type LatePayoutInput struct {
	AttemptID uuid.UUID `json:"attempt_id"`
	RefundID  uuid.UUID `json:"refund_id"`
	OrderID   uuid.UUID `json:"order_id"`
	// WithdrawalID is that of a withdrawal, which has neither an order nor a refund.
	WithdrawalID uuid.UUID `json:"withdrawal_id,omitzero"`
}

// LatePayoutOf is the input of the check of a payout.
func LatePayoutOf(a exchange.PaymentAttempt) LatePayoutInput {
	return LatePayoutInput{AttemptID: a.ID, RefundID: a.Object.RefundID(), OrderID: a.OrderID, WithdrawalID: a.Object.WithdrawalID()}
}

// pays returns what the payout pays.
func (in LatePayoutInput) pays() exchange.MomoObject {
	switch {
	case in.WithdrawalID != uuid.Nil:
		return exchange.WithdrawalObject(in.WithdrawalID)
	case in.RefundID != uuid.Nil:
		return exchange.RefundObject(in.RefundID)
	}
	return exchange.OrderObject(in.OrderID)
}

// LatePayoutResult is how the check ended.
type LatePayoutResult struct {
	Outcome string `json:"outcome"` // "clean", "accounted" or "resolved"
}

// LatePayout checks a payout when evidence about it comes after its flow has ended or has recorded it as settled. The
// operator sometimes reports success after failure, and another payout may have been made meanwhile. A success that two
// sources confirm is booked; if the payee was paid twice, an operator decides. A claim that no other source confirms or
// denies parks the flow, which keeps asking.
func LatePayout(ctx workflow.Context, in LatePayoutInput) (LatePayoutResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &latePayout{in: in}
	if err := f.handlers(ctx); err != nil {
		return LatePayoutResult{}, err
	}
	return attended(ctx, f.commands, f.run)
}

type latePayout struct {
	flow
	in        LatePayoutInput
	woken     bool // a callback came
	step      activities.LatePayoutStep
	questions int
	askAt     time.Time
	began     time.Time
}

func (f *latePayout) handlers(ctx workflow.Context) error {
	of := f.in.pays()
	about := "payout " + f.in.AttemptID.String() + " of " + string(of.Type) + " " + of.ID.String()
	err := f.reach(ctx, LatePayoutID(f.in.AttemptID), about, func() []activities.ObjectRef {
		owner, id := payoutOwner(of, f.in.OrderID)
		objects := []activities.ObjectRef{{Type: owner, ID: id}}
		if f.step.Exception != uuid.Nil {
			objects = append(objects, activities.ObjectRef{Type: activities.ObjectException, ID: f.step.Exception})
		}
		return objects
	})
	f.commands.ears.woken("callbacks", SignalCallback, func(workflow.Context) { f.woken = true })
	return err
}

func (f *latePayout) run(ctx workflow.Context) (LatePayoutResult, error) {
	f.began = workflow.Now(ctx)
	c := card{title: "Checking late evidence about a payout"}
	c.add("Payout", f.in.AttemptID.String())
	addPaid(&c, f.in.pays(), f.in.OrderID)
	c.add("Waits for", "the mobile money operator")
	f.commands.describe(ctx, c)
	outcome := LateClean
	for again := true; again; again = f.oneMore(ctx) {
		if f.look(ctx) {
			outcome = f.settle(ctx)
		}
	}
	f.commands.unpark(ctx, WaitsForNothing)
	show(ctx, AttrStage.ValueSet(StageDone), AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(WaitsForNothing))
	return LatePayoutResult{Outcome: outcome}, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// oneMore reports whether a callback arrived that would be lost when the flow ends.
func (f *latePayout) oneMore(ctx workflow.Context) bool {
	letOthersRun(ctx)
	return f.woken
}

// look asks until the payout is proven, or no source claims it any more. It reports whether it is proven.
func (f *latePayout) look(ctx workflow.Context) bool {
	for {
		f.woken = false
		known := f.check(ctx)
		switch {
		case known && f.step.State == activities.PayoutPaid:
			return true
		case known && f.step.State != activities.PayoutPending:
			return false
		case f.questions > payoutQuestions && f.commands.reason == "":
			f.commands.park(ctx, f.lateClaim(), nil)
		}
		await(ctx, max(f.askAt.Sub(workflow.Now(ctx)), time.Second), "Ask the operator for the outcome of the payout", func() bool {
			return f.woken || f.commands.hasDecision()
		})
		if f.commands.hasDecision() && f.applyDecision(ctx) {
			return true
		}
	}
}

// check reads the evidence, and asks the operator when that is due.
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
	in := activities.CheckPayoutInput{AttemptID: f.in.AttemptID, Ask: ask, Questions: f.questions}
	step, err := step(ctx, look, "Check whether the payout was made", payouts.CheckLatePayout, in)
	if err != nil {
		if !passing(err) {
			f.commands.park(ctx, ReasonStepFailed, err)
		}
		return false
	}
	f.step = step
	if f.commands.reason == ReasonStepFailed {
		f.commands.unpark(ctx, WaitsForMomo)
	}
	return true
}

// lateReasons are the reasons to park because of a payout that was settled, by what it pays.
var lateReasons = map[exchange.MomoObjectType]struct{ claim, twice Reason }{
	exchange.MomoOrder:      {ReasonMomoLate, ReasonMomoTwice},
	exchange.MomoRefund:     {ReasonRefundLate, ReasonRefundTwice},
	exchange.MomoWithdrawal: {ReasonWithdrawalLate, ReasonWithdrawalTwice},
}

// lateClaim is the reason to park while only one source reports that the payout was made.
func (f *latePayout) lateClaim() Reason {
	return lateReasons[f.in.pays().Type].claim
}

// double is the reason to park when the payout was made in addition to another payment.
func (f *latePayout) double() Reason {
	return lateReasons[f.in.pays().Type].twice
}

// applyDecision applies an operator's decision: a resolve names the receipt of the payout, a retry asks at once.
func (f *latePayout) applyDecision(ctx workflow.Context) bool {
	d := f.commands.take()
	f.askAt = workflow.Now(ctx)
	if d.verb != activities.VerbResolve {
		return false
	}
	in := activities.SettlePayoutInput{Object: f.in.pays(), AttemptID: f.in.AttemptID, Proof: d.proof}
	step, err := step(ctx, rail, "Book the payout", payouts.SettleLatePayout, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the payout could not be booked", "error", err)
		f.commands.park(ctx, f.lateClaim(), err)
		return false
	}
	f.step = step
	return true
}

// settle waits for an operator's decision about money that was paid twice. While the crypto of an order is still here, the
// payout can stand instead of the refund; the order's own flow asks for that decision.
func (f *latePayout) settle(ctx workflow.Context) string {
	f.commands.unpark(ctx, WaitsForNothing)
	for !f.step.Elsewhere && f.step.Exception != uuid.Nil && f.step.Undecided {
		d := f.parked(ctx, f.double(), nil)
		in := activities.ExceptionInput{ExceptionID: f.step.Exception, Proof: d.proof}
		err := do(ctx, rail, "Settle what was paid twice", refunds.ResolveException, in)
		if err == nil {
			f.step.Undecided = false
			return LateResolved
		}
		workflow.GetLogger(ctx).Error("the payment exception could not be resolved", "error", err)
		f.commands.park(ctx, f.double(), err)
	}
	return LateAccounted
}
