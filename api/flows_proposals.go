package api

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/workflows"
)

// ProposalFlows is what the API does with the flows of payments from wallets of several owners. Operators' commands go to them by
// CommandFlow.
type ProposalFlows interface {
	// OpenProposal starts the flow of a proposal for an intent and returns when its row is stored. The request and the account label it for
	// operators. A request id opens at most one proposal.
	OpenProposal(ctx context.Context, r exchange.ProposalRequest, account exchange.MultisigAccount, intent uuid.UUID) error
	// StepProposal sends the flow an intent of a verb: to cancel, to take the signature of an owner, or to execute. It carries the intent out
	// once.
	StepProposal(ctx context.Context, proposal, intent uuid.UUID, verb exchange.IntentKind) error
	// DecideProposal sends it an officer's decision. The token authorises it; the id is that of the request.
	DecideProposal(ctx context.Context, proposal, id uuid.UUID, action exchange.ApprovalAction, token string) error
	// ConfirmPayload has an officer's key of our key store sign one payload, by the officer's token, and returns when the signature is stored.
	ConfirmPayload(ctx context.Context, proposal, payload, id uuid.UUID, token string) error
}

func (t temporalFlows) OpenProposal(ctx context.Context, r exchange.ProposalRequest, account exchange.MultisigAccount, intent uuid.UUID) error {
	return t.open(ctx, intent, client.StartWorkflowOptions{
		ID: workflows.MultisigProposalID(r.ID), WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary: workflows.ProposalSummary(r, account), TypedSearchAttributes: workflows.ProposalAttributes(r, account),
	}, workflows.TypeMultisigProposal, workflows.ProposalInput{IntentID: intent})
}

func (t temporalFlows) StepProposal(ctx context.Context, proposal, intent uuid.UUID, verb exchange.IntentKind) error {
	if verb == exchange.IntendProposalCancel {
		return t.intend(ctx, workflows.MultisigProposalID(proposal), workflows.UpdateCancel, intent)
	}
	return t.step(ctx, workflows.MultisigProposalID(proposal), intent, verb)
}

func (t temporalFlows) DecideProposal(ctx context.Context, proposal, id uuid.UUID, action exchange.ApprovalAction, token string) error {
	name := workflows.UpdateReject
	if action == exchange.Approve {
		name = workflows.UpdateApprove
	}
	return t.update(ctx, workflows.MultisigProposalID(proposal), id, name, workflows.ApprovalRef{Token: token})
}

func (t temporalFlows) ConfirmPayload(ctx context.Context, proposal, payload, id uuid.UUID, token string) error {
	return t.update(ctx, workflows.MultisigProposalID(proposal), id, workflows.UpdateConfirm, workflows.PayloadConfirmation{PayloadID: payload, Token: token})
}
