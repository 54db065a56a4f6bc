package api

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/workflows"
)

// RefundFlows is what the API does with the flows that refund or sweep deposits of exceptions. Errors are those of Flows.
type RefundFlows interface {
	// ReturnDeposit starts the flow that carries out a stored request to refund an exception's crypto. It returns when
	// the refund is opened. A repeated call opens no second refund.
	ReturnDeposit(ctx context.Context, exception, request uuid.UUID, n exchange.Network) error
	// KeepDeposit starts the flow that sweeps what the house keeps of an exception to its treasury.
	KeepDeposit(ctx context.Context, exception uuid.UUID, n exchange.Network) error
	// CommandReturn sends that flow the id of an operator's recorded decision.
	CommandReturn(ctx context.Context, exception, command uuid.UUID) error
	// DecideRefund sends an officer's decision to the flow that owes a refund in crypto: the order's, which also takes those
	// about the crypto that a sale takes from a wallet, or, where the exception is given, the exception's. The token authorises it; the id is that of the request.
	DecideRefund(ctx context.Context, order, exception, id uuid.UUID, action exchange.ApprovalAction, token string) error
}

func (t temporalFlows) ReturnDeposit(ctx context.Context, exception, request uuid.UUID, n exchange.Network) error {
	return t.moveDeposit(ctx, request, exception, n, workflows.ReturnDepositInput{RequestID: request})
}

func (t temporalFlows) KeepDeposit(ctx context.Context, exception uuid.UUID, n exchange.Network) error {
	return t.moveDeposit(ctx, exception, exception, n, workflows.ReturnDepositInput{})
}

// moveDeposit starts the flow, or finds it. A flow that has ended may be started again: its first step finds what exists.
func (t temporalFlows) moveDeposit(ctx context.Context, update, exception uuid.UUID, n exchange.Network, in workflows.ReturnDepositInput) error {
	return t.open(ctx, update, client.StartWorkflowOptions{
		ID: workflows.ReturnDepositID(exception), WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary: workflows.ReturnDepositSummary, TypedSearchAttributes: workflows.ReturnDepositAttributes(n, in.RequestID == uuid.Nil),
	}, workflows.TypeReturnDeposit, in)
}

func (t temporalFlows) CommandReturn(ctx context.Context, exception, command uuid.UUID) error {
	return t.update(ctx, workflows.ReturnDepositID(exception), command, workflows.UpdateCommand, workflows.CommandRef{CommandID: command})
}

func (t temporalFlows) DecideRefund(ctx context.Context, order, exception, id uuid.UUID, action exchange.ApprovalAction, token string) error {
	name := workflows.UpdateReject
	if action == exchange.Approve {
		name = workflows.UpdateApprove
	}
	flow := workflows.OffRampID(order)
	if exception != uuid.Nil {
		flow = workflows.ReturnDepositID(exception)
	}
	return t.update(ctx, flow, id, name, workflows.ApprovalRef{Token: token})
}
