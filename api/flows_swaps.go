package api

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/workflows"
)

// SwapFlows is what the API does with the flows of swaps. Operators' commands go to them by CommandFlow.
type SwapFlows interface {
	// OpenSwap starts the flow of a swap for an intent and returns when its row is stored. The quote labels it for operators. A request id
	// opens at most one swap.
	OpenSwap(ctx context.Context, swap, intent uuid.UUID, from exchange.SwapQuote) error
	// CancelSwap sends the swap's flow an intent to cancel it.
	CancelSwap(ctx context.Context, swap, intent uuid.UUID) error
	// DecideSwap sends it an officer's decision. The token authorises it; the id is that of the request.
	DecideSwap(ctx context.Context, swap, id uuid.UUID, action exchange.ApprovalAction, token string) error
	// LookAtSwap has it read its row again. It is no error when the flow has ended.
	LookAtSwap(ctx context.Context, swap uuid.UUID) error
}

func (t temporalFlows) OpenSwap(ctx context.Context, swap, intent uuid.UUID, from exchange.SwapQuote) error {
	return t.open(ctx, intent, client.StartWorkflowOptions{
		ID: workflows.SwapID(swap), WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary: workflows.SwapSummary(from), TypedSearchAttributes: workflows.SwapAttributes(from),
	}, workflows.TypeSwap, workflows.SwapInput{IntentID: intent})
}

func (t temporalFlows) CancelSwap(ctx context.Context, swap, intent uuid.UUID) error {
	return t.intend(ctx, workflows.SwapID(swap), workflows.UpdateCancel, intent)
}

func (t temporalFlows) DecideSwap(ctx context.Context, swap, id uuid.UUID, action exchange.ApprovalAction, token string) error {
	name := workflows.UpdateReject
	if action == exchange.Approve {
		name = workflows.UpdateApprove
	}
	return t.update(ctx, workflows.SwapID(swap), id, name, workflows.ApprovalRef{Token: token})
}

func (t temporalFlows) LookAtSwap(ctx context.Context, swap uuid.UUID) error {
	err := fromTemporal(t.client.SignalWorkflow(ctx, workflows.SwapID(swap), "", workflows.SignalResume, nil))
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return nil
	}
	return err
}
