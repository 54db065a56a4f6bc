package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// MomoPayoutInput starts one attempt to pay out an object. Try counts the attempts: the next may be made only after the
// previous one was definitely refused.
type MomoPayoutInput struct {
	Object  exchange.MomoObject `json:"object"`
	OrderID uuid.UUID           `json:"order_id"` // commands about this order reach the attempt; zero for a withdrawal, which they are about
	Try     int                 `json:"try"`
	// Home is the flow that the operator's callbacks go to: this one, or one that passes them on.
	Home string `json:"home"`
	// Asked is when the flow that owes the money asked the operator for the outcome; zero when it did not.
	Asked time.Time `json:"asked,omitzero"`
}

// MomoPayoutResult is how an attempt ended: completed with its object, or with a reason.
type MomoPayoutResult struct {
	Completed bool                  `json:"completed,omitempty"`
	Reason    string                `json:"reason,omitempty"`
	Refused   bool                  `json:"refused,omitempty"` // definitely not paid: another attempt may be made
	Class     exchange.OutcomeClass `json:"class,omitempty"`   // of the refusal
	Code      string                `json:"code,omitempty"`    // the operator's
	// AttemptID is the attempt, and Try what it counts as, which may be later than the try that was asked for: the flow that
	// owes the money may have been started again. Both are zero when nothing was sent.
	AttemptID uuid.UUID `json:"attempt_id,omitzero"`
	Try       int       `json:"try,omitempty"`
}

// MomoPayout makes one attempt to pay out an order, a refund or a withdrawal, under an id derived from the object. It ends when the payout
// is proven paid or proven refused, or when nothing was sent. Until then it keeps asking; no timer turns an unknown outcome
// into a refusal.
func MomoPayout(ctx workflow.Context, in MomoPayoutInput) (MomoPayoutResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &momoPayout{in: in, reasons: payoutReasons[in.Object.Type]}
	if err := f.handlers(ctx); err != nil {
		return MomoPayoutResult{}, err
	}
	return attended(ctx, f.commands, f.run)
}

// payoutReasons are the reasons to park, by what is paid: those of states of a payout, and of refusals by their class. A
// refusal of another class has the reason of the state.
var payoutReasons = map[exchange.MomoObjectType]map[string]Reason{
	exchange.MomoOrder: {
		activities.PayoutPending: ReasonMomoUnknown, activities.PayoutDisputed: ReasonMomoDisagree, activities.PayoutRefused: ReasonMomoRefused,
		activities.PayoutFloatShort: ReasonMomoFloat, activities.PayoutSuspended: ReasonMomoSuspended, activities.PayoutClaimed: ReasonMomoClaimed,
		activities.PayoutTomorrow: ReasonMomoPayeeLimit, activities.PayoutUncleared: ReasonDepositScreening,
		activities.PayoutInactive:        ReasonMomoInactive,
		string(exchange.ClassCredential): ReasonMomoCredential, string(exchange.ClassPayeeLimit): ReasonMomoPayeeLimit,
		string(exchange.ClassFloat): ReasonMomoFloat,
	},
	exchange.MomoRefund: {
		activities.PayoutPending: ReasonRefundUnknown, activities.PayoutDisputed: ReasonRefundDisagree, activities.PayoutRefused: ReasonRefundRefused,
		activities.PayoutFloatShort: ReasonRefundFloat, activities.PayoutSuspended: ReasonRefundSuspended, activities.PayoutHeld: ReasonRefundPayee,
		activities.PayoutClaimed: ReasonRefundLate, activities.PayoutTomorrow: ReasonRefundPayeeLimit, activities.PayoutOfficers: ReasonRefundSecond,
		string(exchange.ClassCredential): ReasonRefundCredential, string(exchange.ClassPayeeLimit): ReasonRefundPayeeLimit,
		string(exchange.ClassFloat): ReasonRefundFloat,
	},
	exchange.MomoWithdrawal: withdrawalReasons,
}

// Limits of asking for a payout's outcome. The operator requires two minutes between questions.
const (
	payoutLookPause = 2 * time.Minute
	payoutQuestions = 5 // until the flow parks
	payoutSlowLook  = 30 * time.Minute
	payoutLook      = "Ask the operator for the outcome of the payout"
	// submitWithin is how long after a try began its payout may be sent. A later step sends nothing, and another try begins.
	submitWithin = 15 * time.Minute
)

// momoPayout is one attempt to pay out an object, from its submission to its outcome.
type momoPayout struct {
	flow
	in        MomoPayoutInput
	reasons   map[string]Reason
	woken     bool // a callback came
	step      activities.PayoutStep
	questions int
	askAt     time.Time
	began     time.Time
}

func (f *momoPayout) handlers(ctx workflow.Context) error {
	about := "payout of " + string(f.in.Object.Type) + " " + f.in.Object.ID.String()
	err := f.reach(ctx, MomoPayoutID(f.in.Object), about, of(payoutOwner(f.in.Object, f.in.OrderID)))
	f.commands.ears.woken("callbacks", SignalCallback, func(workflow.Context) { f.woken = true })
	return err
}

// run ends when the payout is paid or refused or was not sent, and all update handlers have returned.
func (f *momoPayout) run(ctx workflow.Context) (MomoPayoutResult, error) {
	err := f.see(ctx)
	if err == nil {
		err = workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
	}
	return payoutResult(f.reasons, f.step), err
}

// payoutResult returns what the flow that owes the money needs to know about an attempt that ended.
func payoutResult(reasons map[string]Reason, s activities.PayoutStep) MomoPayoutResult {
	r := MomoPayoutResult{Class: s.Class, Code: s.Code, Refused: s.State == activities.PayoutRefused, AttemptID: s.AttemptID, Try: s.Try}
	reason := reasons[s.State]
	switch byClass, known := reasons[string(s.Class)]; {
	case s.State == activities.PayoutPaid:
		return MomoPayoutResult{Completed: true}
	case r.Refused && known:
		reason = byClass
	}
	r.Reason = string(reason)
	return r
}

func (f *momoPayout) see(ctx workflow.Context) error {
	f.began = workflow.Now(ctx)
	f.commands.describe(ctx, f.card())
	var err error
	if f.step, err = f.in.submit(ctx, rail); err != nil {
		return err
	}
	f.askAt = workflow.Now(ctx).Add(payoutLookPause)
	if !f.in.Asked.IsZero() {
		f.questions, f.askAt = 1, f.in.Asked.Add(payoutLookPause)
	}
	for isOpen(f.step.State) || f.step.State == activities.PayoutDisputed {
		if f.settled(ctx) {
			f.step.State = activities.PayoutPaid
			return nil
		}
		f.wait(ctx)
		f.check(ctx)
	}
	if f.step.State == activities.PayoutPaid {
		f.commands.unpark(ctx, WaitsForNothing)
	}
	return nil
}

// submit runs the step that sends the payout.
func (in MomoPayoutInput) submit(ctx workflow.Context, k kind) (activities.PayoutStep, error) {
	return step(ctx, k, "Send the payout", payouts.SubmitPayout, activities.SubmitPayoutInput{
		Object: in.Object, Try: in.Try, Home: in.Home, Until: workflow.Now(ctx).Add(submitWithin),
	})
}

// checkPayout runs the step that reads the evidence about a payout, and asks the operator too if ask is set.
func checkPayout(ctx workflow.Context, k kind, s activities.PayoutStep, ask bool, questions int) (activities.PayoutStep, error) {
	in := activities.CheckPayoutInput{AttemptID: s.AttemptID, Ask: ask, Questions: questions}
	now, err := step(ctx, k, "Check whether the payout was paid", payouts.CheckPayout, in)
	now.AttemptID, now.Try = s.AttemptID, s.Try
	return now, err
}

// isOpen reports whether the operator may still pay.
func isOpen(state string) bool {
	return state == activities.PayoutAccepted || state == activities.PayoutPending
}

// wait waits until the next question is due, or a callback or a command came.
func (f *momoPayout) wait(ctx workflow.Context) {
	d := max(f.askAt.Sub(workflow.Now(ctx)), time.Second)
	await(ctx, d, payoutLook, func() bool {
		return f.woken || f.commands.hasDecision()
	})
}

// check reads the evidence. It asks the operator after the first callback, because a result alone proves nothing; after
// that, it keeps a distance between questions.
func (f *momoPayout) check(ctx workflow.Context) {
	if f.commands.hasDecision() && f.commands.decided.verb == activities.VerbResolve {
		return
	}
	f.woken = false
	now := workflow.Now(ctx)
	ask := f.questions == 0 || due(f.askAt, now) || f.commands.hasDecision()
	if f.commands.hasDecision() {
		f.commands.take()
	}
	if ask {
		f.questions++
		f.askAt = now.Add(payoutLookPause)
		if f.questions > payoutQuestions {
			f.askAt = now.Add(slower(ctx, payoutSlowLook, f.began))
		}
	}
	step, err := checkPayout(ctx, look, f.step, ask, f.questions)
	switch {
	case err != nil && !passing(err):
		f.commands.park(ctx, ReasonStepFailed, err)
	case err != nil:
	case step.State == activities.PayoutDisputed:
		f.step.State = step.State
		f.commands.park(ctx, f.reasons[step.State], nil)
	default:
		f.step = step
		if f.commands.reason == ReasonStepFailed {
			f.commands.unpark(ctx, WaitsForMomo)
		}
		if f.questions > payoutQuestions && step.State == activities.PayoutPending {
			f.commands.park(ctx, f.reasons[step.State], nil)
		}
	}
}

// settled applies the decision of an operator who proves by a receipt that the payout was made.
func (f *momoPayout) settled(ctx workflow.Context) bool {
	if !f.commands.hasDecision() || f.commands.decided.verb != activities.VerbResolve {
		return false
	}
	d := f.commands.take()
	in := activities.SettlePayoutInput{Object: f.in.Object, AttemptID: f.step.AttemptID, Proof: d.proof}
	if err := do(ctx, rail, "Settle the payout", payouts.SettlePayout, in); err != nil {
		workflow.GetLogger(ctx).Error("the payout could not be settled", "error", err)
		f.commands.park(ctx, f.commands.reason, err)
		return false
	}
	f.commands.unpark(ctx, WaitsForNothing)
	return true
}

func (f *momoPayout) card() card {
	c := card{title: "Payout is pending"}
	addPaid(&c, f.in.Object, f.in.OrderID)
	c.add("Waits for", "the mobile money operator")
	return c
}

// payoutOwner is what operators' commands about a payout name: its order, or its withdrawal.
func payoutOwner(of exchange.MomoObject, order uuid.UUID) (objectType string, id uuid.UUID) {
	if of.Type == exchange.MomoWithdrawal {
		return activities.ObjectWithdrawal, of.ID
	}
	return activities.ObjectOrder, order
}

// addPaid adds what a payout pays to a card.
func addPaid(c *card, of exchange.MomoObject, order uuid.UUID) {
	switch of.Type {
	case exchange.MomoWithdrawal:
		c.add("Withdrawal", of.ID.String())
		return
	case exchange.MomoRefund:
		c.add("Refund", of.ID.String())
	case exchange.MomoOrder, exchange.MomoDeposit:
	}
	c.add("Order", order.String())
}
