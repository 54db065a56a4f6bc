package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// ProposalInput starts the flow of a proposal, whose id names it.
type ProposalInput struct {
	IntentID uuid.UUID `json:"intent_id"`
}

// ProposalResult is how the flow ended.
type ProposalResult struct {
	ProposalID uuid.UUID               `json:"proposal_id"`
	Status     exchange.ProposalStatus `json:"status,omitempty"` // empty when the proposal was refused and never existed
	Detail     string                  `json:"detail,omitempty"`
}

// ProposalAck answers the updates of a proposal with its state.
type ProposalAck struct {
	Status exchange.ProposalStatus `json:"status,omitempty"`
	Detail string                  `json:"detail,omitempty"`
}

// UpdateConfirm has the key of an owner sign that our key store has: PayloadConfirmation, answers nothing. It returns when the signature is
// stored.
const UpdateConfirm = "confirm"

// PayloadConfirmation is an officer's decision that the officer's key signs exactly one payload.
type PayloadConfirmation struct {
	PayloadID uuid.UUID `json:"payload_id"`
	Token     string    `json:"token"`
}

// ProposalAttributes are the search attributes with which the API starts the flow of a payment from an account of several owners.
func ProposalAttributes(r exchange.ProposalRequest, account exchange.MultisigAccount) temporal.SearchAttributes {
	asset := r.Amount.Asset()
	if !r.Is().Moves() {
		asset = account.Network.NativeCoin()
	}
	return proposalAttributes(account.Network, asset, account.MerchantID)
}

func proposalAttributes(n exchange.Network, asset money.Asset, merchant uuid.UUID) temporal.SearchAttributes {
	shown := []temporal.SearchAttributeUpdate{AttrStatus.ValueSet(string(exchange.ProposalProposed)), AttrNetwork.ValueSet(string(n)), AttrAsset.ValueSet(string(asset))}
	if merchant != uuid.Nil {
		shown = append(shown, AttrMerchantID.ValueSet(merchant.String()))
	}
	return attributes(StageApproval, WaitsForOfficer, shown...)
}

// ProposalSummary is the summary of the flow in the Web UI.
func ProposalSummary(r exchange.ProposalRequest, account exchange.MultisigAccount) string {
	switch r.Is() {
	case exchange.ProposeOwners:
		return "Change the owners of a wallet on " + string(account.Network)
	case exchange.ProposeCancel:
		return "Make another proposal of a wallet on " + string(account.Network) + " impossible"
	case exchange.ProposePayment:
	}
	return "Pay " + r.Amount.String() + " " + string(r.Amount.Asset()) + " from a wallet of several owners on " + string(account.Network)
}
