package activities

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// ApprovalStore is where decisions are proven and counted.
type ApprovalStore interface {
	// Decide proves a token and carries its decision out in one transaction; repeated, it returns the
	// transfer as it is.
	Decide(ctx context.Context, transferID uuid.UUID, token string, action exchange.ApprovalAction) (exchange.Transfer, error)
	RecordRefusedDecision(ctx context.Context, transferID uuid.UUID, action exchange.ApprovalAction, door exchange.ApprovalDoor, code exchange.Code) error
}

// Approvals proves what officers decide.
type Approvals struct {
	Store ApprovalStore
}

// DecideInput is a decision that claims to be an officer's. The token is a secret for minutes only and
// good for one use; by the time a history is read it opens nothing.
type DecideInput struct {
	TransferID uuid.UUID               `json:"transfer_id"`
	Action     exchange.ApprovalAction `json:"action"`
	Token      string                  `json:"token"`
}

// maxTokenLength bounds what is looked up as a token; what is longer is none.
const maxTokenLength = 256

// DecideTransfer believes nothing but the token: it says which officer decides what about which transfer,
// and is used up by it. Refusals have the codes of the store's Decide.
func (a *Approvals) DecideTransfer(ctx context.Context, in DecideInput) (TransferState, error) {
	if in.Token == "" || len(in.Token) > maxTokenLength || !in.Action.Valid() {
		return TransferState{}, Failure(ctx, exchange.Errorf(exchange.CodeNotFound, "There is no such approval token for this."))
	}
	f, err := a.Store.Decide(ctx, in.TransferID, in.Token, in.Action)
	return transferState(f), Failure(ctx, err)
}

// RefusedDecisionInput tells of a decision that was not proven.
type RefusedDecisionInput struct {
	TransferID uuid.UUID               `json:"transfer_id"`
	Action     exchange.ApprovalAction `json:"action"`
	Door       exchange.ApprovalDoor   `json:"door"`
	Code       exchange.Code           `json:"code"`
}

// RecordRefusedDecision notes for the auditor that somebody tried to decide without the right to.
func (a *Approvals) RecordRefusedDecision(ctx context.Context, in RefusedDecisionInput) error {
	return Failure(ctx, a.Store.RecordRefusedDecision(ctx, in.TransferID, in.Action, in.Door, in.Code))
}
