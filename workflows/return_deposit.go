package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// TypeReturnDeposit is the name of the flow that moves crypto which fits nothing off the address where it lies.
const TypeReturnDeposit = "ReturnDeposit"

// ReturnDepositID is the id of that flow for a payment exception.
func ReturnDepositID(exceptionID uuid.UUID) string { return "return-deposit:" + exceptionID.String() }

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
	f := &returnDeposit{in: in, id: ReturnDepositID(in.ExceptionID)}
	if err := f.handlers(ctx); err != nil {
		return ReturnDepositResult{}, err
	}
	return attended(ctx, f.desk, func(ctx workflow.Context) (ReturnDepositResult, error) {
		out := f.run(ctx)
		letOthersRun(ctx)
		return out, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
	})
}

type returnDeposit struct {
	in     ReturnDepositInput
	id     string
	desk   *desk
	door   refundDoor
	refund activities.RefundOpened

	opened  bool
	refusal error
}

func (f *returnDeposit) handlers(ctx workflow.Context) error {
	var err error
	f.desk, err = openDesk(ctx, f.id, func() []activities.ObjectRef {
		return []activities.ObjectRef{{Type: activities.ObjectException, ID: f.in.ExceptionID}}
	})
	if err != nil {
		return err
	}
	f.desk.about = "payment exception " + f.in.ExceptionID.String()
	err = workflow.SetUpdateHandlerWithOptions(ctx, UpdateOpen, func(ctx workflow.Context) (RefundOpenedAck, error) {
		if err := workflow.Await(ctx, func() bool { return f.opened }); err != nil {
			return RefundOpenedAck{}, err
		}
		if f.refusal != nil {
			return RefundOpenedAck{}, passOn(f.refusal)
		}
		return RefundOpenedAck{RefundID: f.refund.RefundID}, nil
	}, workflow.UpdateHandlerOptions{Description: "Answers when the refund is opened, or the money is on its way to the treasury."})
	if err != nil {
		return err
	}
	return openRefundDoor(ctx, &f.door)
}

func (f *returnDeposit) run(ctx workflow.Context) ReturnDepositResult {
	if f.in.Keep {
		return f.keep(ctx)
	}
	in := activities.OpenChainRefundInput{ExceptionID: f.in.ExceptionID, RequestID: f.in.RequestID, Actor: f.in.Actor}
	f.refusal = f.step(ctx, "Open the refund", func(ctx workflow.Context) workflow.Future {
		return workflow.ExecuteActivity(ctx, chainRefunds.OpenChainRefund, in)
	}, &f.refund)
	f.opened = true
	if f.refusal != nil {
		return ReturnDepositResult{Outcome: OutcomeRefused}
	}
	back := &cryptoBack{refundID: f.refund.RefundID, orderID: f.refund.OrderID, desk: f.desk, door: &f.door, until: patiently}
	back.run(ctx)
	return ReturnDepositResult{RefundID: f.refund.RefundID, Outcome: OutcomeReturned}
}

// keep moves what the house keeps to its treasury.
func (f *returnDeposit) keep(ctx workflow.Context) ReturnDepositResult {
	var p activities.PaymentApproved
	in := activities.ExceptionInput{ExceptionID: f.in.ExceptionID}
	f.refusal = f.step(ctx, "Approve the way to the treasury", func(ctx workflow.Context) workflow.Future {
		return workflow.ExecuteActivity(ctx, sweeps.ApproveKeptSweep, in)
	}, &p)
	f.opened = true
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
	o := workflow.ChildWorkflowOptions{
		WorkflowID: CryptoPayoutID(in.PaymentID), TaskQueue: QueueFlows, WorkflowIDReusePolicy: reuseAfterEnd, ParentClosePolicy: leaveAlone,
		StaticSummary: "Bring crypto to the treasury", Priority: fairness(priorityOrder, uuid.Nil),
		TypedSearchAttributes: temporal.NewSearchAttributes(
			AttrStage.ValueSet(StageSweep), AttrNetwork.ValueSet(string(p.Network)), AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(WaitsForChain),
		),
	}
	var result CryptoPayoutResult
	err := runChild(ctx, o, CryptoPayout, in, &result, patiently)
	if err == nil && result.Completed {
		return true
	}
	reason := Reason(result.Reason)
	if err != nil {
		reason = ReasonStepFailed
	}
	f.desk.park(ctx, reason, err)
	patiently(ctx, f.desk.hasDecision)
	retry := activities.RetryPayoutInput{PaymentID: p.PaymentID, Proof: f.desk.take().proof}
	if err := workflow.ExecuteActivity(record(ctx, "Approve the payment again"), orders.RetryPayout, retry).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Error("the payment was not approved again", "error", err)
	}
	return false
}

// step runs one step to its end. A refusal in the words of ours comes back; after everything else a person is asked.
func (f *returnDeposit) step(ctx workflow.Context, what string, do func(workflow.Context) workflow.Future, out any) error {
	for {
		err := do(record(ctx, what)).Get(ctx, out)
		if !unforeseen(err) {
			if err == nil {
				f.desk.unpark(ctx, WaitsForChain)
			}
			return err
		}
		f.desk.park(ctx, ReasonStepFailed, err)
		patiently(ctx, f.desk.hasDecision)
		f.desk.take()
	}
}

// patiently waits for something, however long it takes.
func patiently(ctx workflow.Context, ready func() bool) { _ = workflow.Await(ctx, ready) }

// ReturnDepositAttributes are the search attributes with which the API starts the flow.
func ReturnDepositAttributes(n exchange.Network, keep bool) temporal.SearchAttributes {
	stage := StageRefund
	if keep {
		stage = StageSweep
	}
	return temporal.NewSearchAttributes(
		AttrStage.ValueSet(stage), AttrNetwork.ValueSet(string(n)), AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(WaitsForChain),
	)
}

// ReturnDepositSummary is the one line that the Web UI shows of the flow.
const ReturnDepositSummary = "Move crypto that fits nothing"
