package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// MomoPayoutInput starts one attempt to pay an order out. Try counts the attempts: another one may be made only after the
// one before was definitely refused.
type MomoPayoutInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Try     int       `json:"try"`
	// Home is the flow that the operator's callbacks go to: this one, or one that passes them on.
	Home string `json:"home"`
}

// MomoPayoutResult is how an attempt ended: completed with its order, or with a reason.
type MomoPayoutResult struct {
	Completed bool   `json:"completed,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Refused   bool   `json:"refused,omitempty"` // definitely not paid: another attempt may be made
	Class     string `json:"class,omitempty"`   // of the refusal, a Class of activities
	Code      string `json:"code,omitempty"`    // the operator's
}

// MomoPayout makes one attempt to pay an order out, under an id that follows from the order. It ends when the payout is
// proven paid or proven refused, or when nothing was sent. While neither is known it goes on asking, for as long as that
// takes; no timer turns an unknown outcome into a refusal.
func MomoPayout(ctx workflow.Context, in MomoPayoutInput) (MomoPayoutResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &payoutTry{
		orderID: in.OrderID, about: "payout of order " + in.OrderID.String(), unknown: ReasonMomoUnknown, disagree: ReasonMomoDisagree,
		rail: momoRail(in), title: "Payout on its way", what: "the payout", object: "Order", objectID: in.OrderID,
	}
	if err := f.handlers(ctx, MomoPayoutID(in.OrderID)); err != nil {
		return MomoPayoutResult{}, err
	}
	step, err := attended(ctx, f.desk, f.run)
	return payoutResult(step), err
}

// payoutResult says what the order's flow needs to know of an attempt that ended.
func payoutResult(step activities.PayoutStep) MomoPayoutResult {
	r := MomoPayoutResult{Class: step.Class, Code: step.Code}
	switch step.State {
	case activities.RefundPaid:
		return MomoPayoutResult{Completed: true}
	case activities.RefundSuspended:
		r.Reason = string(ReasonMomoSuspended)
		return r
	case activities.RefundFloatShort:
		r.Reason = string(ReasonMomoFloat)
		return r
	case activities.PayoutClaimed:
		r.Reason = string(ReasonMomoClaimed)
		return r
	case activities.PayoutTomorrow:
		r.Reason = string(ReasonMomoPayeeLimit)
		return r
	case activities.PayoutUncleared:
		r.Reason = string(ReasonDepositScreening)
		return r
	}
	r.Refused, r.Reason = true, string(ReasonMomoRefused)
	switch step.Class {
	case activities.ClassCredential:
		r.Reason = string(ReasonMomoCredential)
	case activities.ClassPayeeLimit:
		r.Reason = string(ReasonMomoPayeeLimit)
	case activities.ClassFloat:
		r.Reason = string(ReasonMomoFloat)
	}
	return r
}

func momoRail(in MomoPayoutInput) payoutRail {
	return payoutRail{
		submit: func(ctx workflow.Context) (activities.PayoutStep, error) {
			in := activities.SubmitPayoutInput{OrderID: in.OrderID, Try: in.Try, Home: in.Home}
			return step(ctx, rail, "Send the payout", payouts.SubmitPayout, in)
		},
		check: func(ctx workflow.Context, l payoutLook) (activities.PayoutStep, error) {
			in := activities.CheckPayoutInput{OrderID: in.OrderID, AttemptID: l.attempt, Ask: l.ask, Questions: l.questions}
			return step(ctx, look, "See whether the payout was paid", payouts.CheckPayout, in)
		},
		settle: func(ctx workflow.Context, attempt uuid.UUID, proof activities.Proof) error {
			in := activities.SettlePayoutInput{OrderID: in.OrderID, AttemptID: attempt, Proof: proof}
			return do(ctx, rail, "Settle the payout", payouts.SettlePayout, in)
		},
	}
}

// Limits of seeing a payout to its end. The operator asks for two minutes between questions.
const (
	payoutLookPause = 2 * time.Minute
	payoutQuestions = 5 // until a person is told
	payoutSlowLook  = 30 * time.Minute
)

// payoutLook is a look at an attempt: whether the operator is asked once more, and how often it was with that.
type payoutLook struct {
	attempt   uuid.UUID
	ask       bool
	questions int
}

// payoutRail is how a payout is sent, looked at, and settled by a person's command.
type payoutRail struct {
	submit func(workflow.Context) (activities.PayoutStep, error)
	check  func(workflow.Context, payoutLook) (activities.PayoutStep, error)
	settle func(workflow.Context, uuid.UUID, activities.Proof) error
}

// payoutTry is one attempt to pay money out, of a refund or of an order, from its submission to what became of it.
type payoutTry struct {
	flow
	orderID           uuid.UUID // whose commands reach it
	about             string
	title, what       string
	object            string // what the current details call the thing that is paid
	objectID          uuid.UUID
	unknown, disagree Reason
	rail              payoutRail
	woken             bool // a callback came
	step              activities.PayoutStep
	questions         int
	askAt             time.Time
	began             time.Time
}

func (f *payoutTry) handlers(ctx workflow.Context, id string) error {
	err := f.reach(ctx, id, f.about, of(activities.ObjectOrder, f.orderID))
	woken(ctx, "callbacks", SignalCallback, func(workflow.Context) { f.woken = true })
	return err
}

// run ends when the payout is paid or refused, or was not sent, and everybody who asked something has the answer.
func (f *payoutTry) run(ctx workflow.Context) (activities.PayoutStep, error) {
	step, err := f.see(ctx)
	if err == nil {
		err = workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
	}
	return step, err
}

func (f *payoutTry) see(ctx workflow.Context) (activities.PayoutStep, error) {
	f.began = workflow.Now(ctx)
	describe(ctx, f.card("the operator"))
	var err error
	if f.step, err = f.rail.submit(ctx); err != nil {
		return f.step, err
	}
	f.askAt = workflow.Now(ctx).Add(payoutLookPause)
	for {
		switch f.step.State {
		case activities.RefundPaid:
			f.desk.unpark(ctx, WaitsForNobody)
			return f.step, nil
		case activities.RefundRefused, activities.RefundHeld, activities.RefundFloatShort, activities.RefundSuspended,
			activities.PayoutClaimed, activities.PayoutTomorrow, activities.PayoutUncleared:
			return f.step, nil
		}
		if f.settled(ctx) {
			return activities.PayoutStep{AttemptID: f.step.AttemptID, State: activities.RefundPaid}, nil
		}
		f.wait(ctx)
		f.check(ctx)
	}
}

// wait sleeps until it is time to ask, or something happened.
func (f *payoutTry) wait(ctx workflow.Context) {
	d := max(f.askAt.Sub(workflow.Now(ctx)), time.Second)
	await(ctx, d, "Ask the operator what became of "+f.what, func() bool {
		return f.woken || f.desk.hasDecision()
	})
}

// check looks at what is known. The first callback is answered with a question, because a result alone
// proves nothing; after that, questions keep their distance.
func (f *payoutTry) check(ctx workflow.Context) {
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
		f.askAt = now.Add(payoutLookPause)
		if f.questions > payoutQuestions {
			f.askAt = now.Add(slower(ctx, payoutSlowLook, f.began))
		}
	}
	step, err := f.rail.check(ctx, payoutLook{attempt: f.step.AttemptID, ask: ask, questions: f.questions})
	switch {
	case err != nil && !passing(err):
		f.desk.park(ctx, ReasonStepFailed, err)
	case err != nil:
	case step.State == activities.RefundDisputed:
		f.step.State = step.State
		f.desk.park(ctx, f.disagree, nil)
	default:
		attempt := f.step.AttemptID
		f.step = step
		f.step.AttemptID = attempt
		if f.desk.reason == ReasonStepFailed {
			f.desk.unpark(ctx, WaitsForMomo)
		}
		if f.questions > payoutQuestions && step.State == activities.RefundPending {
			f.desk.park(ctx, f.unknown, nil)
		}
	}
}

// settled obeys an operator who says with a reference that the payout was made.
func (f *payoutTry) settled(ctx workflow.Context) bool {
	if !f.desk.hasDecision() || f.desk.decided.verb != activities.VerbResolve {
		return false
	}
	d := f.desk.take()
	if err := f.rail.settle(ctx, f.step.AttemptID, d.proof); err != nil {
		workflow.GetLogger(ctx).Error("the payout was not settled", "error", err)
		f.desk.park(ctx, f.desk.reason, err)
		return false
	}
	f.desk.unpark(ctx, WaitsForNobody)
	return true
}

func (f *payoutTry) card(waits string) card {
	c := card{title: f.title}
	c.add(f.object, f.objectID.String())
	if f.objectID != f.orderID {
		c.add("Order", f.orderID.String())
	}
	c.add("Waits for", waits)
	return c
}
