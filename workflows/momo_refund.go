package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// refundTries returns the tries to pay a refund. Its callbacks come to this flow, which forwards them.
func (f *flow) refundTries(refundID, orderID, merchant uuid.UUID) *momoTries {
	of := exchange.RefundObject(refundID)
	return &momoTries{
		flow: f, in: MomoPayoutInput{Object: of, OrderID: orderID, Try: 1, Home: f.id},
		child: child{
			id: MomoPayoutID(of), summary: "Pay out a refund", priority: fairness(priorityRefund, merchant), shown: attributes(StageRefund, WaitsForMomo),
		},
		owed: func() bool { return true },
		card: func(waits string, until time.Time) card {
			c := card{title: "Refund is pending"}
			c.add("Refund", refundID.String())
			c.add("Order", orderID.String())
			c.add("Waits for", waits)
			if !until.IsZero() {
				c.add("Until", moment(until))
			}
			return c
		},
		refund: func(ctx workflow.Context, proof activities.Proof, _ string) error {
			return confirmPayee(ctx, refundID, proof)
		},
	}
}

// confirmPayee lets a refund with a doubtful payee go to the phone that was prompted.
func confirmPayee(ctx workflow.Context, refundID uuid.UUID, proof activities.Proof) error {
	in := activities.ConfirmPayeeInput{RefundID: refundID, Proof: proof}
	err := do(ctx, rail, "Confirm the payee", refunds.ConfirmPayee, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the payee could not be confirmed", "error", err)
	}
	return err
}
