package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// Limits of paying a refund out. The operator asks for two minutes between questions.
const (
	refundLook      = 2 * time.Minute
	refundQuestions = 5 // until a person is told
	refundSlowLook  = 30 * time.Minute
)

// Refund pays mobile money back: one payout per try, under an id that follows from the refund. It ends
// when the payout is proven paid or proven refused. While neither is known it goes on asking, for as
// long as that takes; no timer turns an unknown outcome into a refusal.
func Refund(ctx workflow.Context, in RefundInput) (RefundResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &refund{in: in, id: RefundID(in.RefundID)}
	if err := f.handlers(ctx); err != nil {
		return RefundResult{}, err
	}
	result, err := f.run(ctx)
	if err != nil {
		return RefundResult{}, err
	}
	return result, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

type refund struct {
	in        RefundInput
	id        string
	desk      *desk
	woken     bool // a callback came
	step      activities.RefundStep
	questions int
	askAt     time.Time
	began     time.Time
}

func (f *refund) handlers(ctx workflow.Context) error {
	var err error
	f.desk, err = openDesk(ctx, f.id, func() []activities.ObjectRef {
		return []activities.ObjectRef{{Type: activities.ObjectOrder, ID: f.in.OrderID}}
	})
	if err != nil {
		return err
	}
	f.desk.about = "refund " + f.in.RefundID.String() + " of order " + f.in.OrderID.String()
	workflow.GoNamed(ctx, "callbacks", func(ctx workflow.Context) {
		for {
			workflow.GetSignalChannel(ctx, SignalCallback).Receive(ctx, nil)
			f.woken = true
		}
	})
	return nil
}

func (f *refund) run(ctx workflow.Context) (RefundResult, error) {
	f.began = workflow.Now(ctx)
	describe(ctx, f.card("the operator"))
	in := activities.SubmitRefundInput{RefundID: f.in.RefundID, Try: f.in.Try, Home: f.in.Home}
	if err := workflow.ExecuteActivity(rail(ctx, "Send the refund"), refunds.SubmitRefund, in).Get(ctx, &f.step); err != nil {
		return RefundResult{}, err
	}
	f.askAt = workflow.Now(ctx).Add(refundLook)
	for {
		switch f.step.State {
		case activities.RefundPaid:
			f.desk.unpark(ctx, WaitsForNobody)
			return RefundResult{Completed: true}, nil
		case activities.RefundRefused:
			return RefundResult{Reason: string(ReasonRefundRefused), Refused: true}, nil
		case activities.RefundHeld:
			return RefundResult{Reason: string(ReasonRefundPayee)}, nil
		case activities.RefundFloatShort:
			return RefundResult{Reason: string(ReasonRefundFloat)}, nil
		}
		if f.settled(ctx) {
			return RefundResult{Completed: true}, nil
		}
		f.wait(ctx)
		f.check(ctx)
	}
}

// wait sleeps until it is time to ask, or something happened.
func (f *refund) wait(ctx workflow.Context) {
	d := max(f.askAt.Sub(workflow.Now(ctx)), time.Second)
	await(ctx, d, "Ask the operator what became of the refund", func() bool {
		return f.woken || f.desk.hasDecision()
	})
}

// check looks at what is known. The first callback is answered with a question, because a result alone
// proves nothing; after that, questions keep their distance.
func (f *refund) check(ctx workflow.Context) {
	if f.desk.hasDecision() && f.desk.decided.verb == activities.VerbResolve {
		return
	}
	f.woken = false
	now := workflow.Now(ctx)
	ask := f.questions == 0 || due(f.askAt, now) || f.desk.hasDecision()
	if f.desk.hasDecision() {
		f.desk.take()
	}
	if ask {
		f.questions++
		f.askAt = now.Add(refundLook)
		if f.questions > refundQuestions {
			f.askAt = now.Add(slower(ctx, refundSlowLook, f.began))
		}
	}
	in := activities.CheckRefundInput{RefundID: f.in.RefundID, AttemptID: f.step.AttemptID, Ask: ask, Questions: f.questions}
	var step activities.RefundStep
	err := workflow.ExecuteActivity(look(ctx, "See whether the refund was paid"), refunds.CheckRefund, in).Get(ctx, &step)
	switch {
	case err != nil && !passing(err):
		f.desk.park(ctx, ReasonStepFailed, err)
	case err != nil:
	case step.State == activities.RefundDisputed:
		f.step.State = step.State
		f.desk.park(ctx, ReasonRefundDisagree, nil)
	default:
		attempt := f.step.AttemptID
		f.step = step
		f.step.AttemptID = attempt
		if f.desk.reason == ReasonStepFailed {
			f.desk.unpark(ctx, WaitsForMomo)
		}
		if f.questions > refundQuestions && step.State == activities.RefundPending {
			f.desk.park(ctx, ReasonRefundUnknown, nil)
		}
	}
}

// settled obeys an operator who says with a reference that the refund was paid.
func (f *refund) settled(ctx workflow.Context) bool {
	if !f.desk.hasDecision() || f.desk.decided.verb != activities.VerbResolve {
		return false
	}
	d := f.desk.take()
	in := activities.SettleRefundInput{RefundID: f.in.RefundID, AttemptID: f.step.AttemptID, Proof: d.proof}
	if err := workflow.ExecuteActivity(rail(ctx, "Settle the refund"), refunds.SettleRefund, in).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Error("the refund was not settled", "error", err)
		f.desk.park(ctx, f.desk.reason, err)
		return false
	}
	f.desk.unpark(ctx, WaitsForNobody)
	return true
}

func (f *refund) card(waits string) card {
	c := card{title: "Refund on its way"}
	c.add("Refund", f.in.RefundID.String())
	c.add("Order", f.in.OrderID.String())
	c.add("Waits for", waits)
	return c
}
