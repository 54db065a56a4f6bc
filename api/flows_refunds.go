package api

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/workflows"
)

// RefundFlows is what the API asks of the flows that move crypto which does not stay, with the errors of Flows.
type RefundFlows interface {
	// ReturnDeposit starts the flow that sends money of an exception back, as a stored request says, and returns when
	// the refund is opened. Asked twice, it is opened once.
	ReturnDeposit(ctx context.Context, exception, request uuid.UUID, n exchange.Network, by exchange.Principal) error
	// KeepDeposit starts the flow that brings what the house keeps of an exception to its treasury.
	KeepDeposit(ctx context.Context, exception uuid.UUID, n exchange.Network) error
	// CommandReturn hands that flow the id of an operator's recorded decision.
	CommandReturn(ctx context.Context, exception, command uuid.UUID) error
	// DecideRefund hands an officer's decision to the flow that owes a refund in crypto: the order's, or, where the
	// exception is given, the one that returns its money. The token proves it; the id names the request.
	DecideRefund(ctx context.Context, order, exception, id uuid.UUID, action exchange.ApprovalAction, token string) error
}

func (t temporalFlows) ReturnDeposit(ctx context.Context, exception, request uuid.UUID, n exchange.Network, by exchange.Principal) error {
	in := workflows.ReturnDepositInput{ExceptionID: exception, RequestID: request, Actor: actor(by)}
	return t.moveDeposit(ctx, request, n, in)
}

func (t temporalFlows) KeepDeposit(ctx context.Context, exception uuid.UUID, n exchange.Network) error {
	return t.moveDeposit(ctx, exception, n, workflows.ReturnDepositInput{ExceptionID: exception, Keep: true})
}

// moveDeposit starts the flow, or finds it. One that is over may be started anew: its first step finds what is there.
func (t temporalFlows) moveDeposit(ctx context.Context, id uuid.UUID, n exchange.Network, in workflows.ReturnDepositInput) error {
	start := t.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: workflows.ReturnDepositID(in.ExceptionID), TaskQueue: workflows.QueueFlows,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            workflows.ReturnDepositSummary,
		TypedSearchAttributes:    workflows.ReturnDepositAttributes(n, in.Keep),
	}, workflows.TypeReturnDeposit, in)
	handle, err := t.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateID: id.String(), UpdateName: workflows.UpdateOpen, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return fromTemporal(err)
	}
	var opened workflows.RefundOpenedAck
	return fromTemporal(handle.Get(ctx, &opened))
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
