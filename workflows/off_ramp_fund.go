package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// fund sends the crypto of an order from the customer's custodial wallet to the escrow address. The database transaction
// that records the payment as final also advances the order. If the crypto can't be sent, the order is closed.
func (f *offRamp) fund(ctx workflow.Context) {
	f.moved(ctx, StageDeposit, WaitsForChain, "the crypto from the customer's wallet")
	in := activities.OrderInput{OrderID: f.order.OrderID}
	approved := quickly(ctx, &f.flow, "Find the payment from the customer's wallet", sweeps.ApproveFunding, in)
	for ok := true; ok; { // until something is signed the customer may cancel the order
		result := f.payOutCrypto(ctx, approved.PaymentID, "Send", "from the customer's wallet", f.untilFunded)
		if result.Completed {
			f.order.OrderState = quickly(ctx, &f.flow, "Read the order", offRamps.ReadOffRamp, in)
			return
		}
		ok = !f.unfunded && f.retryFunding(ctx, approved.PaymentID, Reason(result.Reason))
	}
	f.expiresAt = workflow.Now(ctx)
}

// untilFunded waits until ready, and lets the customer cancel the order meanwhile.
func (f *offRamp) untilFunded(ctx workflow.Context, ready func() bool) {
	for {
		_ = workflow.Await(ctx, func() bool { return ready() || (f.cancel != nil && !f.unfunded) || f.surplus() }) // never cancelled
		switch {
		case ready():
			return
		case f.surplus():
			f.applyMovement(ctx)
		default:
			f.giveFundingUp(ctx, activities.Behalf{IntentID: f.cancel.intent})
		}
	}
}

// giveFundingUp cancels the payment from the customer's wallet, unless a transaction may already exist. The update "cancel"
// is answered when the order is closed.
func (f *offRamp) giveFundingUp(ctx workflow.Context, asked activities.Behalf) {
	in := activities.CancelFundingInput{OrderID: f.order.OrderID, Behalf: asked}
	err := f.commands.carryOut(ctx, func(k kind) error {
		return do(ctx, k, "Cancel the payment from the customer's wallet", sweeps.CancelFunding, in)
	})
	if err != nil {
		workflow.GetLogger(ctx).Warn("the payment from the customer's wallet could not be cancelled", "error", err)
		f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The crypto is on its way, so the order can't be cancelled any more."))
		return
	}
	f.unfunded = true
}

// retryFunding waits for a decision about a payment without a pending transaction, and reports whether to try again.
func (f *offRamp) retryFunding(ctx workflow.Context, payment uuid.UUID, r Reason) bool {
	for {
		f.commands.park(ctx, r, nil)
		f.mark(ctx, exchange.WaitOperator)
		f.untilFunded(ctx, func() bool { return f.commands.hasDecision() || f.unfunded })
		if !f.unfunded {
			d := f.commands.take()
			if d.verb == activities.VerbRetry {
				f.must(ctx, "Approve the payment again", func() error { return approveAgain(ctx, &payment, d.proof) })
				f.commands.unpark(ctx, WaitsForChain)
				return true
			}
			f.giveFundingUp(ctx, d.proof.Behalf())
		}
		if f.unfunded {
			f.commands.unpark(ctx, WaitsForNothing)
			return false
		}
	}
}
