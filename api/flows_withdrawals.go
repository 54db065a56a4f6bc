package api

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/workflows"
)

// WithdrawalFlows is what the API does with the flows of withdrawals.
type WithdrawalFlows interface {
	// OpenWithdrawal starts the flow of a withdrawal for an intent and returns when its row is stored. A request id opens at most one.
	OpenWithdrawal(ctx context.Context, r exchange.WithdrawalRequest, intent uuid.UUID) error
	// StepWithdrawal sends the withdrawal's flow an intent of a verb, which it carries out once.
	StepWithdrawal(ctx context.Context, withdrawal, intent uuid.UUID, verb exchange.IntentKind) error
	// DecideWithdrawal sends it an officer's decision. The token authorises it; the id is that of the request.
	DecideWithdrawal(ctx context.Context, withdrawal, id uuid.UUID, action exchange.ApprovalAction, token string) error
	// LookAtWithdrawal has it read its row again. It is no error when the flow has ended.
	LookAtWithdrawal(ctx context.Context, withdrawal uuid.UUID) error
}

func (t temporalFlows) OpenWithdrawal(ctx context.Context, r exchange.WithdrawalRequest, intent uuid.UUID) error {
	return t.open(ctx, intent, client.StartWorkflowOptions{
		ID: workflows.WithdrawalID(r.ID), WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary: workflows.WithdrawalSummary(r), TypedSearchAttributes: workflows.WithdrawalAttributes(r.Payout),
	}, workflows.TypeOTCWithdrawal, workflows.WithdrawalInput{IntentID: intent})
}

func (t temporalFlows) StepWithdrawal(ctx context.Context, withdrawal, intent uuid.UUID, verb exchange.IntentKind) error {
	return t.step(ctx, workflows.WithdrawalID(withdrawal), intent, verb)
}

func (t temporalFlows) DecideWithdrawal(ctx context.Context, withdrawal, id uuid.UUID, action exchange.ApprovalAction, token string) error {
	name := workflows.UpdateReject
	if action == exchange.Approve {
		name = workflows.UpdateApprove
	}
	return t.update(ctx, workflows.WithdrawalID(withdrawal), id, name, workflows.ApprovalRef{Token: token})
}

func (t temporalFlows) LookAtWithdrawal(ctx context.Context, withdrawal uuid.UUID) error {
	err := fromTemporal(t.client.SignalWorkflow(ctx, workflows.WithdrawalID(withdrawal), "", workflows.SignalResume, nil))
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return nil
	}
	return err
}
