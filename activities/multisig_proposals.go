package activities

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// ProposalRowStore stores proposals for flows. Every method is one transaction and may be called again: a proposal that has gone on already
// is returned unchanged.
type ProposalRowStore interface {
	ProposalByID(ctx context.Context, id uuid.UUID) (exchange.Proposal, error)
	MultisigAccountByID(ctx context.Context, id uuid.UUID) (exchange.MultisigAccount, error)
	// OpenProposal, CancelProposal and ExecuteProposal carry out an intent, DecideProposal and ConfirmPayload an officer's decision.
	OpenProposal(ctx context.Context, a exchange.Asked) (exchange.Proposal, error)
	CancelProposal(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Proposal, error)
	ExecuteProposal(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Proposal, error)
	DecideProposal(ctx context.Context, id uuid.UUID, action exchange.ApprovalAction, token string) (exchange.ProposalStanding, error)
	ConfirmPayload(ctx context.Context, payload uuid.UUID, token string) (exchange.MultisigOwner, error)
	// AdvanceProposal moves a proposal on when the rules allow it, and ends one that is to end and can.
	AdvanceProposal(ctx context.Context, id uuid.UUID) (exchange.ProposalStanding, error)
	// SignProposal calls a proposal ready when enough owners have signed.
	SignProposal(ctx context.Context, id uuid.UUID) (exchange.Proposal, error)
	refusalStore
}

// Proposals changes the rows of what is proposed for wallets of several owners. It is registered on the flows queue.
type Proposals struct{ Store ProposalRowStore }

// ProposalState is the state of a proposal. Version grows with every change, so that of two answers the newer one is known.
type ProposalState struct {
	ProposalID uuid.UUID               `json:"proposal_id"`
	Status     exchange.ProposalStatus `json:"status"`
	Detail     string                  `json:"detail,omitempty"`
	Ending     exchange.ProposalStatus `json:"ending,omitempty"` // the end that is wanted, as long as what was signed could be executed
	PaymentID  uuid.UUID               `json:"payment_id,omitzero"`
	Executes   bool                    `json:"executes,omitempty"`   // an officer had it executed
	SignableAt time.Time               `json:"signable_at,omitzero"` // when a change of the owners has rested
	Approvals  int                     `json:"approvals,omitempty"`
	Required   int                     `json:"approvals_required,omitempty"`
	Expires    time.Time               `json:"expires_at,omitzero"`
	Version    int64                   `json:"version"`
}

// OpenedProposal is a proposal as it was asked for: what the flow needs for its decisions and its details.
type OpenedProposal struct {
	ProposalState
	Kind       exchange.ProposalKind `json:"kind,omitempty"`
	Network    exchange.Network      `json:"network"`
	Amount     money.Amount          `json:"amount"`
	WalletID   uuid.UUID             `json:"wallet_id"`
	MerchantID uuid.UUID             `json:"merchant_id,omitzero"`
	// Choices are the owners whom what they sign names, on a network where it names them: each choice signs something of its own, of which
	// the network executes one. Empty where any owners may sign.
	Choices [][]string `json:"choices,omitempty"`
}

func proposalState(p exchange.Proposal) ProposalState {
	return ProposalState{
		ProposalID: p.ID, Status: p.Status, Detail: p.StatusDetail, Ending: p.Ending, PaymentID: p.PaymentID,
		Executes:   p.ExecutedBy != uuid.Nil && p.StatusDetail != exchange.WaitExecution, // not what was signed anew since
		SignableAt: p.SignableAt, Expires: p.ExpiresAt, Version: p.Version,
	}
}

func proposalStanding(s exchange.ProposalStanding) ProposalState {
	out := proposalState(s.Proposal)
	out.PaymentID, out.Approvals, out.Required = s.PaymentID, s.Approvals, s.Needed
	return out
}

// OpenProposal stores the proposal that an intent asks for and holds its amount. Refusals have the codes of the store's OpenProposal.
func (a *Proposals) OpenProposal(ctx context.Context, in IntentInput) (OpenedProposal, error) {
	p, err := a.Store.OpenProposal(ctx, in.asked(ctx))
	if err != nil {
		return OpenedProposal{}, Failure(ctx, err)
	}
	account, err := a.Store.MultisigAccountByID(ctx, p.WalletID)
	if err != nil {
		return OpenedProposal{}, Failure(ctx, err)
	}
	return OpenedProposal{
		ProposalState: proposalState(p), Kind: p.Kind, Network: p.Network, Amount: p.Amount, WalletID: p.WalletID, MerchantID: p.MerchantID, Choices: choicesOf(account),
	}, nil
}

// maxChoices bounds the choices of owners for whom something to sign is prepared: all of three of five, and more than anyone looks through.
const maxChoices = 10

// choicesOf lists the choices of owners who suffice, ordered by address. Where there are too many, the first owners are chosen.
func choicesOf(a exchange.MultisigAccount) [][]string {
	if a.Kind != exchange.MultisigSPL {
		return nil
	}
	var owners []string
	for _, o := range a.Owners {
		owners = append(owners, o.Address)
	}
	slices.Sort(owners)
	all := choose(owners, a.Threshold, maxChoices+1)
	if len(all) > maxChoices {
		return nil
	}
	return all
}

// choose lists choices of n of them, in their order, and no more than most.
func choose(of []string, n, most int) (all [][]string) {
	if n == 0 {
		return [][]string{nil}
	}
	for i := range of {
		for _, rest := range choose(of[i+1:], n-1, most) {
			if len(all) < most {
				all = append(all, append([]string{of[i]}, rest...))
			}
		}
	}
	return all
}

// ProposalInput names a proposal.
type ProposalInput struct {
	ProposalID uuid.UUID `json:"proposal_id"`
}

// ReadProposal returns the state of a proposal.
func (a *Proposals) ReadProposal(ctx context.Context, in ProposalInput) (ProposalState, error) {
	p, err := a.Store.ProposalByID(ctx, in.ProposalID)
	return proposalState(p), Failure(ctx, err)
}

// AdvanceProposal approves the payment when the rule about all that leaves and the wallet's policy allow it. It ends what is over or wanted
// to end, if nothing of it can be executed.
func (a *Proposals) AdvanceProposal(ctx context.Context, in ProposalInput) (ProposalState, error) {
	s, err := a.Store.AdvanceProposal(ctx, in.ProposalID)
	return proposalStanding(s), Failure(ctx, err)
}

// SignProposal calls a proposal ready when enough owners have signed.
func (a *Proposals) SignProposal(ctx context.Context, in ProposalInput) (ProposalState, error) {
	p, err := a.Store.SignProposal(ctx, in.ProposalID)
	return proposalState(p), Failure(ctx, err)
}

// ProposalStepInput is what an intent asks of a proposal.
type ProposalStepInput struct {
	ProposalID uuid.UUID `json:"proposal_id"`
	IntentID   uuid.UUID `json:"intent_id"`
}

// CancelProposal gives a proposal up, or has it end as soon as nothing of it can be executed.
func (a *Proposals) CancelProposal(ctx context.Context, in ProposalStepInput) (ProposalState, error) {
	p, err := a.Store.CancelProposal(ctx, in.ProposalID, Behalf{IntentID: in.IntentID}.asked(ctx))
	return proposalState(p), Failure(ctx, err)
}

// ExecuteProposal lets the signer send what enough owners signed.
func (a *Proposals) ExecuteProposal(ctx context.Context, in ProposalStepInput) (ProposalState, error) {
	p, err := a.Store.ExecuteProposal(ctx, in.ProposalID, Behalf{IntentID: in.IntentID}.asked(ctx))
	return proposalState(p), Failure(ctx, err)
}

// DecideProposalInput is a decision that claims to be an officer's, see DecideInput.
type DecideProposalInput struct {
	ProposalID uuid.UUID               `json:"proposal_id"`
	Action     exchange.ApprovalAction `json:"action"`
	Token      string                  `json:"token"`
}

// DecideProposal accepts only the token, as DecideTransfer does.
func (a *Proposals) DecideProposal(ctx context.Context, in DecideProposalInput) (ProposalState, error) {
	if err := plausible(in.Action, in.Token); err != nil {
		return ProposalState{}, Failure(ctx, err)
	}
	s, err := a.Store.DecideProposal(ctx, in.ProposalID, in.Action, in.Token)
	return proposalStanding(s), Failure(ctx, err)
}

// ConfirmPayloadInput claims to be an officer's decision that the officer's key, which our key store has, signs a payload.
type ConfirmPayloadInput struct {
	PayloadID uuid.UUID `json:"payload_id"`
	Token     string    `json:"token"`
}

// ConfirmPayload accepts only the token, and names the owner whose key may sign the payload now.
func (a *Proposals) ConfirmPayload(ctx context.Context, in ConfirmPayloadInput) (SignPayloadInput, error) {
	if err := plausible(exchange.Approve, in.Token); err != nil {
		return SignPayloadInput{}, Failure(ctx, err)
	}
	o, err := a.Store.ConfirmPayload(ctx, in.PayloadID, in.Token)
	return SignPayloadInput{PayloadID: in.PayloadID, Owner: o.Address}, Failure(ctx, err)
}

// RefusedProposalDecisionInput describes a decision about a proposal, or the confirmation of a payload of it, without proof.
type RefusedProposalDecisionInput struct {
	ProposalID uuid.UUID                `json:"proposal_id,omitzero"`
	PayloadID  uuid.UUID                `json:"payload_id,omitzero"`
	Action     exchange.ApprovalAction  `json:"action"`
	Channel    exchange.ApprovalChannel `json:"channel"`
	Code       exchange.Code            `json:"code"`
}

// RecordRefusedProposalDecision records an attempt to decide or to confirm without the right to, for the auditor.
func (a *Proposals) RecordRefusedProposalDecision(ctx context.Context, in RefusedProposalDecisionInput) error {
	of, id := exchange.ApproveProposal, in.ProposalID
	if in.PayloadID != uuid.Nil {
		of, id = exchange.ApprovePayload, in.PayloadID
	}
	return Failure(ctx, a.Store.RecordRefusedDecision(ctx, of, id, in.Action, in.Channel, in.Code))
}
