package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// payOut pays out the shillings. It ends when the order is completed, or when it failed and its refund is open.
func (f *offRamp) payOut(ctx workflow.Context) {
	f.moved(ctx, StagePayout, WaitsForMomo, "the mobile money operator")
	of := exchange.OrderObject(f.order.OrderID)
	p := &momoTries{
		flow: &f.flow, in: MomoPayoutInput{Object: of, OrderID: f.order.OrderID, Try: 1, Home: f.id},
		child: child{
			id: MomoPayoutID(of), summary: "Pay out " + f.order.Fiat.String() + " " + string(f.order.Fiat.Asset()),
			priority: fairness(priorityOrder, f.order.MerchantID), shown: attributes(StagePayout, WaitsForMomo),
		},
		owed: func() bool { return f.order.Status == exchange.OrderProcessing },
		card: f.card, refund: f.refund, own: f.payoutRefused,
	}
	if p.run(ctx) {
		f.order.OrderState = activities.OrderState{OrderID: f.order.OrderID, Status: exchange.OrderCompleted, Detail: exchange.WaitNothing}
	}
}

// payoutRefused screens the sender of the crypto again when the payout must not be made otherwise, and returns the crypto
// when the payee can't be paid. It reports whether it did one of them.
func (f *offRamp) payoutRefused(ctx workflow.Context, r MomoPayoutResult) bool {
	switch {
	case Reason(r.Reason) == ReasonDepositScreening:
		f.clearedAgain(ctx, StagePayout, WaitsForMomo, "the mobile money operator")
	case r.Refused && (r.Class == exchange.ClassPayee || r.Class == exchange.ClassDeclared):
		f.must(ctx, "Open the refund", func() error { return f.refund(ctx, activities.Proof{}, "payout refused: "+r.Code) })
	default:
		return false
	}
	return true
}
