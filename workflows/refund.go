package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// Refund pays mobile money back: one payout per try, under an id that follows from the refund. It ends
// when the payout is proven paid or proven refused. While neither is known it goes on asking, for as
// long as that takes; no timer turns an unknown outcome into a refusal.
func Refund(ctx workflow.Context, in RefundInput) (RefundResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &payoutTry{
		orderID: in.OrderID, about: "refund " + in.RefundID.String() + " of order " + in.OrderID.String(),
		unknown: ReasonRefundUnknown, disagree: ReasonRefundDisagree, rail: refundRail(in), title: "Refund on its way", what: "the refund",
		object: "Refund", objectID: in.RefundID,
	}
	if err := f.handlers(ctx, RefundID(in.RefundID)); err != nil {
		return RefundResult{}, err
	}
	step, err := attended(ctx, f.desk, f.run)
	return refundResult(step), err
}

// refundResult says what the flow that owes the refund needs to know of a payout that ended.
func refundResult(step activities.PayoutStep) RefundResult {
	switch step.State {
	case activities.RefundPaid:
		return RefundResult{Completed: true}
	case activities.RefundHeld:
		return RefundResult{Reason: string(ReasonRefundPayee)}
	case activities.RefundFloatShort:
		return RefundResult{Reason: string(ReasonRefundFloat)}
	case activities.RefundSuspended:
		return RefundResult{Reason: string(ReasonRefundSuspended)}
	}
	return RefundResult{Reason: string(ReasonRefundRefused), Refused: true}
}

func refundRail(in RefundInput) payoutRail {
	return payoutRail{
		submit: func(ctx workflow.Context) (activities.PayoutStep, error) {
			in := activities.SubmitRefundInput{RefundID: in.RefundID, Try: in.Try, Home: in.Home}
			return step(ctx, rail, "Send the refund", refunds.SubmitRefund, in)
		},
		check: func(ctx workflow.Context, l payoutLook) (activities.PayoutStep, error) {
			in := activities.CheckRefundInput{RefundID: in.RefundID, AttemptID: l.attempt, Ask: l.ask, Questions: l.questions}
			return step(ctx, look, "See whether the refund was paid", refunds.CheckRefund, in)
		},
		settle: func(ctx workflow.Context, attempt uuid.UUID, proof activities.Proof) error {
			in := activities.SettleRefundInput{RefundID: in.RefundID, AttemptID: attempt, Proof: proof}
			return do(ctx, rail, "Settle the refund", refunds.SettleRefund, in)
		},
	}
}
