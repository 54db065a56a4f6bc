package workflows

import (
	"fmt"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// saleRelease is the wait of a sale for officers, who decide whether its crypto may leave the customer's wallet.
type saleRelease struct {
	orderID uuid.UUID
	state   activities.SaleReleaseState
	decided bool // a decision was counted that the flow has not seen
	shown   bool // that the sale waits
}

// released waits until the rule about all that leaves lets the crypto go: for officers, for the rest of a new payee, or both.
// The wait ends with the life of the order: without enough approvals the payment is given up. It reports whether the crypto
// may go.
func (f *offRamp) released(ctx workflow.Context) bool {
	if f.order.Status != exchange.OrderPending {
		return true
	}
	w := &saleRelease{orderID: f.order.OrderID}
	f.approvals.about = w
	defer func() { f.approvals.about = nil }()
	for {
		w.decided = false
		in := activities.OrderInput{OrderID: f.order.OrderID}
		w.state = quickly(ctx, &f.flow, "Release the crypto in the customer's wallet", sweeps.ReleaseFunding, in)
		f.order.OrderState = w.state.OrderState
		switch {
		case w.state.Passed:
			return true
		case w.state.GivenUp:
			f.unfunded = true
			f.close(ctx, exchange.DetailRejected, activities.Behalf{})
			return false
		}
		if !w.shown {
			show(ctx, AttrStatus.ValueSet(string(f.order.Status)), AttrStage.ValueSet(StageApproval), AttrWaitingFor.ValueSet(WaitsForOfficer))
			w.shown = true
		}
		f.awaitOfficers(ctx, w)
		if f.cancel != nil {
			f.giveFundingUp(ctx, activities.Behalf{IntentID: f.cancel.intent})
		} else if due(f.expiresAt, workflow.Now(ctx)) {
			f.giveFundingUp(ctx, activities.Behalf{})
		}
		if f.unfunded {
			return false // the order is closed as one that no crypto came for
		}
		if due(f.expiresAt, workflow.Now(ctx)) { // not given up: look again what it waits for
			f.expiresAt = workflow.Now(ctx).Add(depositTimeout)
		}
	}
}

// awaitOfficers waits for a decision, a cancellation, the end of the rest of a new payee, or the end of the order.
func (f *offRamp) awaitOfficers(ctx workflow.Context, w *saleRelease) {
	card := f.card("officers", f.expiresAt)
	card.add("Approvals", fmt.Sprintf("%d of %d", w.state.Agreed, w.state.Needed))
	card.add("To decide", "an officer approves or rejects the order in the API, or gets a token from POST /approvals/tokens and sends it with the signal "+
		SignalApprove+" or "+SignalReject+` as {"token": "…"}`)
	f.commands.describe(ctx, card)
	until, summary := f.expiresAt, "Wait for the officers' decisions"
	if rests := w.state.RestsUntil; !rests.IsZero() && rests.Before(until) {
		until, summary = rests.Add(restMargin), "Wait until the payee has rested"
	}
	await(ctx, until.Sub(workflow.Now(ctx)), summary, func() bool { return w.decided || f.cancel != nil })
}

func (w *saleRelease) prove(ctx workflow.Context, action exchange.ApprovalAction, token string) (RefundAck, error) {
	in := activities.DecideSaleInput{OrderID: w.orderID, Action: action, Token: token}
	s, err := step(ctx, database, "Prove the officer's decision", approvals.DecideSale, in)
	if err != nil {
		return RefundAck{}, err
	}
	w.decided = true
	return RefundAck{Needed: s.Needed, Agreed: s.Agreed}, nil
}

func (w *saleRelease) note(ctx workflow.Context, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code) error {
	return do(ctx, database, "Record a decision without proof", approvals.RecordRefusedSaleDecision,
		activities.RefusedSaleDecisionInput{OrderID: w.orderID, Action: action, Channel: channel, Code: code})
}
