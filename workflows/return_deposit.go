package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// ReturnDepositInput starts the flow. The crypto is returned as the stored request of an operator asks. Without a request
// it goes to the treasury, if the exception was decided so.
type ReturnDepositInput struct {
	RequestID uuid.UUID `json:"request_id,omitzero"`
}

// ReturnDepositResult is how the flow ended.
type ReturnDepositResult struct {
	RefundID uuid.UUID `json:"refund_id,omitzero"`
	Outcome  string    `json:"outcome"` // an Outcome constant
}

// How ReturnDeposit ends.
const (
	OutcomeReturned = "returned" // the refund is paid
	OutcomeKept     = "kept"     // the crypto is in the treasury
	OutcomeRefused  = "refused"  // nothing was opened
	OutcomeNothing  = "nothing"  // no escrow address holds any of it
)

// RefundOpenedAck answers the update "open" of the flow.
type RefundOpenedAck struct {
	RefundID uuid.UUID `json:"refund_id"`
}

// ReturnDeposit returns unmatched crypto, or moves it to the treasury when we keep it, so that its escrow address can be
// leased again.
func ReturnDeposit(ctx workflow.Context, in ReturnDepositInput) (ReturnDepositResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &returnDeposit{in: in}
	if err := f.handlers(ctx); err != nil {
		return ReturnDepositResult{}, err
	}
	return attended(ctx, f.commands, func(ctx workflow.Context) (ReturnDepositResult, error) {
		out := f.run(ctx)
		return out, lastHandlers(ctx)
	})
}

type returnDeposit struct {
	flow
	in        ReturnDepositInput
	exception uuid.UUID
	approvals refundApprovals
	refund    activities.RefundOpened
}

func (f *returnDeposit) handlers(ctx workflow.Context) error {
	id, err := returnDepositForm.object(ctx)
	if err != nil {
		return err
	}
	f.exception = id
	h := &handlers{ctx: ctx}
	h.err = f.reach(ctx, ReturnDepositID(id), "payment exception "+id.String(), of(activities.ObjectException, id))
	h.update(UpdateOpen, "Answers when the refund is open, or the payment to the treasury is approved.", apartOpen(f.onOpen), nil)
	f.approvals.open(h, f.commands)
	return h.err
}

func (f *returnDeposit) onOpen(ctx workflow.Context) (RefundOpenedAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return RefundOpenedAck{}, err
	}
	return RefundOpenedAck{RefundID: f.refund.RefundID}, nil
}

func (f *returnDeposit) run(ctx workflow.Context) ReturnDepositResult {
	if f.in.RequestID == uuid.Nil {
		return f.keep(ctx)
	}
	in := activities.OpenChainRefundInput{ExceptionID: f.exception, RequestID: f.in.RequestID}
	f.refund = begin(ctx, f, "Open the refund", chainRefunds.OpenChainRefund, in)
	if f.refusal != nil {
		return ReturnDepositResult{Outcome: OutcomeRefused}
	}
	back := &cryptoRefund{refundID: f.refund.RefundID, orderID: f.refund.OrderID, commands: f.commands, approvals: &f.approvals, until: patiently, resumed: &f.resumed}
	back.run(ctx)
	return ReturnDepositResult{RefundID: f.refund.RefundID, Outcome: OutcomeReturned}
}

// keep moves crypto that we keep to the treasury.
func (f *returnDeposit) keep(ctx workflow.Context) ReturnDepositResult {
	in := activities.ExceptionInput{ExceptionID: f.exception}
	p := begin(ctx, f, "Approve the payment to the treasury", sweeps.ApproveKeptSweep, in)
	switch {
	case f.refusal != nil:
		return ReturnDepositResult{Outcome: OutcomeRefused}
	case p.PaymentID == uuid.Nil:
		return ReturnDepositResult{Outcome: OutcomeNothing}
	}
	for !f.sweep(ctx, p) {
	}
	f.commands.unpark(ctx, WaitsForNothing)
	return ReturnDepositResult{Outcome: OutcomeKept}
}

// sweep has the payment to the treasury carried out, and waits for an operator when no transaction can be made.
func (f *returnDeposit) sweep(ctx workflow.Context, p activities.PaymentApproved) bool {
	in := CryptoPayoutInput{PaymentID: p.PaymentID, ExceptionID: f.exception, Network: p.Network}
	c := child{
		summary: "Move crypto to the treasury", priority: fairness(priorityOrder, uuid.Nil),
		shown: attributes(StageSweep, WaitsForChain, AttrNetwork.ValueSet(string(p.Network))), resumed: &f.resumed,
	}
	result, err := carry(ctx, in, c, patiently)
	if err == nil && result.Completed {
		return true
	}
	reason := Reason(result.Reason)
	if err != nil {
		reason = ReasonStepFailed
	}
	_ = approveAgain(ctx, &p.PaymentID, f.parked(ctx, reason, err).proof) // the next try finds the payment still parked
	return false
}

// begin runs the flow's first step until it succeeds. A business refusal ends the flow; any other failure parks it.
func begin[C, In, Out any](ctx workflow.Context, f *returnDeposit, what string, activity func(C, In) (Out, error), in In) Out {
	out, err := step(ctx, database, what, activity, in)
	for unforeseen(err) {
		f.parked(ctx, ReasonStepFailed, err)
		out, err = step(ctx, database, what, activity, in)
	}
	if err == nil {
		f.commands.unpark(ctx, WaitsForChain)
	}
	f.opened, f.refusal = true, err
	return out
}

// ReturnDepositAttributes are the search attributes with which the API starts the flow.
func ReturnDepositAttributes(n exchange.Network, keep bool) temporal.SearchAttributes {
	stage := StageRefund
	if keep {
		stage = StageSweep
	}
	return attributes(stage, WaitsForChain, AttrNetwork.ValueSet(string(n)))
}

// ReturnDepositSummary is the summary of the flow in the Web UI.
const ReturnDepositSummary = "Return or keep unmatched crypto"
