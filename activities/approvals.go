package activities

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// ApprovalStore proves and counts decisions.
type ApprovalStore interface {
	// Decide proves a token and carries out its decision in one transaction; repeated, it returns the transfer unchanged.
	Decide(ctx context.Context, transferID uuid.UUID, token string, action exchange.ApprovalAction) (exchange.Transfer, error)
	// DecideSale does so about a sale from a wallet in our custody.
	DecideSale(ctx context.Context, orderID uuid.UUID, token string, action exchange.ApprovalAction) (exchange.SaleRelease, error)
	refusalStore
}

// refusalStore records attempts to decide about an object without the right to.
type refusalStore interface {
	RecordRefusedDecision(
		ctx context.Context, object exchange.ApprovalObject, id uuid.UUID, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code,
	) error
}

// Approvals proves the officers' decisions.
type Approvals struct {
	Store ApprovalStore
}

// DecideInput is a decision that claims to be an officer's. The token is valid for minutes and for one use, so a later reader
// of the history can't use it.
type DecideInput struct {
	TransferID uuid.UUID               `json:"transfer_id"`
	Action     exchange.ApprovalAction `json:"action"`
	Token      string                  `json:"token"`
}

// maxTokenLength bounds the text that is looked up as a token; longer text is never a token.
const maxTokenLength = 256

// plausible refuses what no approval token can be for, before it is looked up.
func plausible(action exchange.ApprovalAction, token string) error {
	if token == "" || len(token) > maxTokenLength || !action.Valid() {
		return exchange.Errorf(exchange.CodeNotFound, "The approval token does not exist or is for another decision.")
	}
	return nil
}

// DecideTransfer accepts only the token, which names the officer, the decision and the transfer, and marks it as used.
// Refusals have the codes of the store's Decide.
func (a *Approvals) DecideTransfer(ctx context.Context, in DecideInput) (TransferState, error) {
	if err := plausible(in.Action, in.Token); err != nil {
		return TransferState{}, Failure(ctx, err)
	}
	f, err := a.Store.Decide(ctx, in.TransferID, in.Token, in.Action)
	return transferState(f), Failure(ctx, err)
}

// RefusedDecisionInput describes a decision without proof.
type RefusedDecisionInput struct {
	TransferID uuid.UUID                `json:"transfer_id"`
	Action     exchange.ApprovalAction  `json:"action"`
	Channel    exchange.ApprovalChannel `json:"channel"`
	Code       exchange.Code            `json:"code"`
}

// RecordRefusedDecision records an attempt to decide without the right to, for the auditor.
func (a *Approvals) RecordRefusedDecision(ctx context.Context, in RefusedDecisionInput) error {
	return Failure(ctx, a.Store.RecordRefusedDecision(ctx, exchange.ApproveTransfer, in.TransferID, in.Action, in.Channel, in.Code))
}

// DecideSaleInput is a decision about a sale from a custodial wallet that claims to be an officer's, see DecideInput.
type DecideSaleInput struct {
	OrderID uuid.UUID               `json:"order_id"`
	Action  exchange.ApprovalAction `json:"action"`
	Token   string                  `json:"token"`
}

// DecideSale accepts only the token, as DecideTransfer does.
func (a *Approvals) DecideSale(ctx context.Context, in DecideSaleInput) (SaleReleaseState, error) {
	if err := plausible(in.Action, in.Token); err != nil {
		return SaleReleaseState{}, Failure(ctx, err)
	}
	r, err := a.Store.DecideSale(ctx, in.OrderID, in.Token, in.Action)
	return saleRelease(r), Failure(ctx, err)
}

// RefusedSaleDecisionInput describes a decision about a sale without proof.
type RefusedSaleDecisionInput struct {
	OrderID uuid.UUID                `json:"order_id"`
	Action  exchange.ApprovalAction  `json:"action"`
	Channel exchange.ApprovalChannel `json:"channel"`
	Code    exchange.Code            `json:"code"`
}

// RecordRefusedSaleDecision records an attempt to decide without the right to, for the auditor.
func (a *Approvals) RecordRefusedSaleDecision(ctx context.Context, in RefusedSaleDecisionInput) error {
	return Failure(ctx, a.Store.RecordRefusedDecision(ctx, exchange.ApproveSale, in.OrderID, in.Action, in.Channel, in.Code))
}
