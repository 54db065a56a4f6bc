package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// fund brings the crypto of an order from the customer's own wallet in our custody to the escrow address. The order goes
// on in the transaction in which that is final. Where nothing comes, it is closed as one whose time is over.
func (f *offRamp) fund(ctx workflow.Context) {
	f.moved(ctx, StageDeposit, WaitsForChain, "the crypto from the customer's wallet")
	payment, ok := f.approveFunding(ctx)
	for ok { // until something is signed the customer may give the order up
		result := f.payOutCrypto(ctx, payment, "Take", "from the customer's wallet", f.untilFunded)
		if result.Completed {
			f.order.OrderState = mustStep(ctx, &f.flow, database, "Look at the order", offRamps.ReadOffRamp, activities.OrderInput{OrderID: f.order.OrderID})
			return
		}
		ok = !f.unfunded && f.retryFunding(ctx, payment, Reason(result.Reason))
	}
	f.expiresAt = workflow.Now(ctx)
}

// approveFunding has the crypto reserved in the customer's wallet and its payment approved, unless that has too little by
// now.
func (f *offRamp) approveFunding(ctx workflow.Context) (uuid.UUID, bool) {
	var approved activities.PaymentApproved
	f.must(ctx, "Take the crypto from the wallet", func() (err error) {
		in := activities.OrderInput{OrderID: f.order.OrderID}
		approved, err = step(ctx, database, "Take the crypto from the wallet", sweeps.ApproveFunding, in)
		if e, refused := asApplication(err); refused && e.Type() == string(exchange.CodeInsufficientFunds) {
			f.closing = exchange.DetailUnfunded
			return nil
		}
		return err
	})
	return approved.PaymentID, f.closing == ""
}

// untilFunded waits, and lets the customer give the order up meanwhile.
func (f *offRamp) untilFunded(ctx workflow.Context, ready func() bool) {
	for {
		_ = workflow.Await(ctx, func() bool { return ready() || (f.cancel != nil && !f.unfunded) || f.surplus() }) // never cancelled
		switch {
		case ready():
			return
		case f.surplus():
			f.heed(ctx)
		default:
			f.giveFundingUp(ctx, f.cancel.actor)
		}
	}
}

// giveFundingUp leaves the crypto where it is, unless it may be on its way. The wish to cancel is answered when the order
// is closed.
func (f *offRamp) giveFundingUp(ctx workflow.Context, by Actor) {
	in := activities.CancelFundingInput{OrderID: f.order.OrderID, Actor: by}
	err := do(ctx, database, "Leave the crypto in the wallet", sweeps.CancelFunding, in)
	if err != nil {
		workflow.GetLogger(ctx).Warn("the funding was not given up", "error", err)
		f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The crypto is on its way: the order can't be cancelled any more."))
		return
	}
	f.unfunded = true
}

// retryFunding waits with a payment for which no transaction is on its way until somebody decides, and reports whether it
// is tried again.
func (f *offRamp) retryFunding(ctx workflow.Context, payment uuid.UUID, r Reason) bool {
	for {
		f.desk.park(ctx, r, nil)
		f.mark(ctx, exchange.WaitOperator)
		f.untilFunded(ctx, func() bool { return f.desk.hasDecision() || f.unfunded })
		if !f.unfunded {
			d := f.desk.take()
			if d.verb == activities.VerbRetry {
				f.must(ctx, "Approve the payment again", func() error { return approveAgain(ctx, payment, d.proof) })
				f.desk.unpark(ctx, WaitsForChain)
				return true
			}
			f.giveFundingUp(ctx, d.proof.Actor())
		}
		if f.unfunded {
			f.desk.unpark(ctx, WaitsForNobody)
			return false
		}
	}
}
