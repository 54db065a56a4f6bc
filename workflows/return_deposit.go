package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// ReturnDepositInput starts the flow. With Keep the house keeps what came, and it goes to the treasury; otherwise it
// goes back, as a person asked in the request.
type ReturnDepositInput struct {
	ExceptionID uuid.UUID `json:"exception_id"`
	RequestID   uuid.UUID `json:"request_id,omitzero"`
	Actor       Actor     `json:"actor,omitzero"`
	Keep        bool      `json:"keep,omitempty"`
}

// ReturnDepositResult is how the flow ended.
type ReturnDepositResult struct {
	RefundID uuid.UUID `json:"refund_id,omitzero"`
	Outcome  string    `json:"outcome"` // an Outcome constant
}

// How ReturnDeposit ends.
const (
	OutcomeReturned = "returned" // it is back where it goes
	OutcomeKept     = "kept"     // it is in the treasury
	OutcomeRefused  = "refused"  // nothing was opened
	OutcomeNothing  = "nothing"  // nothing of it lies on an address of the pool
)

// RefundOpenedAck answers the update "open" of the flow.
type RefundOpenedAck struct {
	RefundID uuid.UUID `json:"refund_id"`
}

// ReturnDeposit brings money of a chain that fits nothing back, or to the treasury where the house keeps it, so that
// the address on which it lies may be lent again.
func ReturnDeposit(ctx workflow.Context, in ReturnDepositInput) (ReturnDepositResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &returnDeposit{in: in}
	if err := f.handlers(ctx); err != nil {
		return ReturnDepositResult{}, err
	}
	return attended(ctx, f.desk, func(ctx workflow.Context) (ReturnDepositResult, error) {
		out := f.run(ctx)
		return out, lastHandlers(ctx)
	})
}

type returnDeposit struct {
	flow
	in     ReturnDepositInput
	door   refundDoor
	refund activities.RefundOpened
}

func (f *returnDeposit) handlers(ctx workflow.Context) error {
	h := &handlers{ctx: ctx}
	h.err = f.reach(ctx, ReturnDepositID(f.in.ExceptionID), "payment exception "+f.in.ExceptionID.String(), of(activities.ObjectException, f.in.ExceptionID))
	h.update(UpdateOpen, "Answers when the refund is opened, or the money is on its way to the treasury.", f.onOpen, nil)
	openRefundDoor(h, &f.door)
	return h.err
}

func (f *returnDeposit) onOpen(ctx workflow.Context) (RefundOpenedAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return RefundOpenedAck{}, err
	}
	return RefundOpenedAck{RefundID: f.refund.RefundID}, nil
}

func (f *returnDeposit) run(ctx workflow.Context) ReturnDepositResult {
	if f.in.Keep {
		return f.keep(ctx)
	}
	in := activities.OpenChainRefundInput{ExceptionID: f.in.ExceptionID, RequestID: f.in.RequestID, Actor: f.in.Actor}
	f.refund = begin(ctx, f, "Open the refund", chainRefunds.OpenChainRefund, in)
	if f.refusal != nil {
		return ReturnDepositResult{Outcome: OutcomeRefused}
	}
	back := &cryptoBack{refundID: f.refund.RefundID, orderID: f.refund.OrderID, desk: f.desk, door: &f.door, until: patiently}
	back.run(ctx)
	return ReturnDepositResult{RefundID: f.refund.RefundID, Outcome: OutcomeReturned}
}

// keep moves what the house keeps to its treasury.
func (f *returnDeposit) keep(ctx workflow.Context) ReturnDepositResult {
	in := activities.ExceptionInput{ExceptionID: f.in.ExceptionID}
	p := begin(ctx, f, "Approve the way to the treasury", sweeps.ApproveKeptSweep, in)
	switch {
	case f.refusal != nil:
		return ReturnDepositResult{Outcome: OutcomeRefused}
	case p.PaymentID == uuid.Nil:
		return ReturnDepositResult{Outcome: OutcomeNothing}
	}
	for !f.sweep(ctx, p) {
	}
	f.desk.unpark(ctx, WaitsForNobody)
	return ReturnDepositResult{Outcome: OutcomeKept}
}

// sweep has the payment to the treasury carried out, and waits for a person when no transaction of it can be made.
func (f *returnDeposit) sweep(ctx workflow.Context, p activities.PaymentApproved) bool {
	in := CryptoPayoutInput{PaymentID: p.PaymentID, ExceptionID: f.in.ExceptionID, Network: p.Network}
	c := child{
		summary: "Bring crypto to the treasury", priority: fairness(priorityOrder, uuid.Nil),
		shown: attributes(StageSweep, WaitsForChain, AttrNetwork.ValueSet(string(p.Network))),
	}
	result, err := carry(ctx, in, c, patiently)
	if err == nil && result.Completed {
		return true
	}
	reason := Reason(result.Reason)
	if err != nil {
		reason = ReasonStepFailed
	}
	_ = approveAgain(ctx, p.PaymentID, f.parked(ctx, reason, err).proof) // the next try finds the payment parked still
	return false
}

// begin runs the step that the flow begins with to its end. A refusal in the words of ours ends the flow; after everything
// else an operator is asked.
func begin[C, In, Out any](ctx workflow.Context, f *returnDeposit, what string, activity func(C, In) (Out, error), in In) Out {
	out, err := step(ctx, database, what, activity, in)
	for unforeseen(err) {
		f.parked(ctx, ReasonStepFailed, err)
		out, err = step(ctx, database, what, activity, in)
	}
	if err == nil {
		f.desk.unpark(ctx, WaitsForChain)
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

// ReturnDepositSummary is the one line that the Web UI shows of the flow.
const ReturnDepositSummary = "Move crypto that fits nothing"
