package api

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/workflows"
)

// OffRampFlows is what the API does with the flows of orders that sell crypto. Errors are those of Flows.
type OffRampFlows interface {
	// OpenOffRamp starts the flow of a sale for an intent and returns when its row is stored. A request id opens at most
	// one sale.
	OpenOffRamp(ctx context.Context, r exchange.OrderRequest, intent uuid.UUID) error
	// CancelOffRamp sends the sale's flow an intent to cancel it.
	CancelOffRamp(ctx context.Context, order, intent uuid.UUID) error
	// AcceptOther and ReturnOther send the sale's flow an intent of its seller's about crypto of another amount.
	AcceptOther(ctx context.Context, order, intent uuid.UUID) error
	ReturnOther(ctx context.Context, order, intent uuid.UUID) error
	// CommandOffRamp sends the sale's flow the id of an operator's recorded decision.
	CommandOffRamp(ctx context.Context, order, command uuid.UUID) error
	// RefundAddressSet notifies the sale's flow that its refund address is set.
	RefundAddressSet(ctx context.Context, order uuid.UUID) error
	// ConfirmBank notifies the sale's flow that an officer confirmed or refused its bank payout; the id is that of the decision.
	ConfirmBank(ctx context.Context, order, confirmation uuid.UUID) error
}

// OpenOffRamp gives each call an update id of its own: for a closed run, the server remembers the answer to an update
// id and would repeat a temporary refusal.
func (t temporalFlows) OpenOffRamp(ctx context.Context, r exchange.OrderRequest, intent uuid.UUID) error {
	return t.open(ctx, newID(), client.StartWorkflowOptions{
		ID: workflows.OffRampID(r.ID),
		// A flow that was refused temporarily, and opened nothing, has failed: the same request may try again.
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
		StaticSummary:         workflows.OffRampSummary(r), TypedSearchAttributes: workflows.OffRampAttributes(r),
	}, workflows.TypeOffRamp, workflows.OffRampInput{IntentID: intent})
}

func (t temporalFlows) CancelOffRamp(ctx context.Context, order, intent uuid.UUID) error {
	return t.intend(ctx, workflows.OffRampID(order), workflows.UpdateCancel, intent)
}

func (t temporalFlows) AcceptOther(ctx context.Context, order, intent uuid.UUID) error {
	return t.intend(ctx, workflows.OffRampID(order), workflows.UpdateAcceptDeposit, intent)
}

func (t temporalFlows) ReturnOther(ctx context.Context, order, intent uuid.UUID) error {
	return t.intend(ctx, workflows.OffRampID(order), workflows.UpdateReturnDeposit, intent)
}

func (t temporalFlows) CommandOffRamp(ctx context.Context, order, command uuid.UUID) error {
	return t.update(ctx, workflows.OffRampID(order), command, workflows.UpdateCommand, workflows.CommandRef{CommandID: command})
}

func (t temporalFlows) RefundAddressSet(ctx context.Context, order uuid.UUID) error {
	return fromTemporal(t.client.SignalWorkflow(ctx, workflows.OffRampID(order), "", workflows.SignalRefundAddress, nil))
}

func (t temporalFlows) ConfirmBank(ctx context.Context, order, confirmation uuid.UUID) error {
	return t.update(ctx, workflows.OffRampID(order), confirmation, workflows.UpdateConfirmBank, workflows.BankConfirmRef{ConfirmationID: confirmation})
}
