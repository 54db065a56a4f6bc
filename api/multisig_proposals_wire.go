package api

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

// JointView is what owners sign, as the driver of its network reads it out of the stored bytes, which it has checked.
type JointView struct {
	Kind        exchange.ProposalKind
	Owners      exchange.OwnersChange // that the account shall have
	Account, To string
	Amount      money.Amount
	Digest      []byte
	Body        []byte // the network's encoding: EIP-712 typed data in JSON, TRON's raw_data, Solana's message
	ID          string
	FeeLimit    money.Amount // the most that the account itself can pay for it
}

// wireProposalApproval is an officer's decision. Who decided and why is for the staff.
type wireProposalApproval struct {
	OfficerID *uuid.UUID `json:"officer_id"`
	Action    string     `json:"action"`
	Note      *string    `json:"note"`
	At        timestamp  `json:"at"`
}

// wireSignature is that an owner has signed. Enough bytes of signatures are the payment: those of keys that are ours leave the house only in
// a transaction that an officer had executed, and those of other owners are for who may have that done.
type wireSignature struct {
	PayloadID uuid.UUID  `json:"payload_id"`
	Owner     string     `json:"owner"`
	Weight    int        `json:"weight"`
	Held      bool       `json:"held"`
	UserID    *uuid.UUID `json:"user_id"`
	Signature *string    `json:"signature"`
	At        timestamp  `json:"at"`
}

// wireProposal is what is proposed for a wallet of several owners. What only staff see is null for others.
type wireProposal struct {
	ID                 uuid.UUID              `json:"id"`
	Kind               string                 `json:"kind"`
	WalletID           uuid.UUID              `json:"wallet_id"`
	Network            string                 `json:"network"`
	Address            string                 `json:"address"`
	Asset              string                 `json:"asset"`
	Amount             string                 `json:"amount"`
	Destination        string                 `json:"destination"`
	ToWalletID         *uuid.UUID             `json:"to_wallet_id"`
	Reference          *string                `json:"reference"`
	FiatEquivalent     equivalentWire         `json:"fiat_equivalent"`
	Digest             string                 `json:"digest"`
	PolicyVersion      int                    `json:"policy_version"`
	ProposerID         *uuid.UUID             `json:"proposer_id"`
	MerchantID         *uuid.UUID             `json:"merchant_id"`
	Approvals          []wireProposalApproval `json:"approvals"`
	ApprovalsGiven     int                    `json:"approvals_given"`
	RequiredApprovals  int                    `json:"required_approvals"`
	Signatures         []wireSignature        `json:"signatures"`
	RequiredSignatures int                    `json:"required_signatures"`
	Owners             []wireNewOwner         `json:"owners"`
	Threshold          *int                   `json:"threshold"`
	ControlThreshold   *int                   `json:"control_threshold"`
	Supersedes         *uuid.UUID             `json:"supersedes"`
	SignableAt         *timestamp             `json:"signable_at"`
	Status             string                 `json:"status"`
	StatusDetail       string                 `json:"status_detail"`
	Ending             *string                `json:"ending"`
	Sequence           *uint64                `json:"sequence"`
	PayloadExpiresAt   *timestamp             `json:"payload_expires_at"`
	PaymentID          *uuid.UUID             `json:"payment_id"`
	ExecutedBy         *uuid.UUID             `json:"executed_by"`
	TxHash             *string                `json:"tx_hash"`
	CreatedAt          timestamp              `json:"created_at"`
	UpdatedAt          timestamp              `json:"updated_at"`
	ExpiresAt          timestamp              `json:"expires_at"`
	CompletedAt        *timestamp             `json:"completed_at"`
	Version            int64                  `json:"version"`
	Retry              string                 `json:"retry,omitempty"`
}

// proposalWire converts a proposal for a reader. A merchant is named as the proposer, and members of the staff only to the staff.
func proposalWire(p exchange.Proposal, f store.ProposalFacts, reader exchange.Principal) wireProposal {
	staff := forStaff(reader)
	w := wireProposal{
		ID: p.ID, Kind: string(p.Kind), WalletID: p.WalletID, Network: string(p.Network), Address: p.Address, Asset: string(p.Amount.Asset()), Amount: p.Amount.String(),
		Destination: p.Destination, ToWalletID: staff(p.ToWalletID), Reference: optText(p.Reference),
		FiatEquivalent: equivalentWire{string(p.Value.Asset()), p.Value.String(), p.Rate.String()}, Digest: p.Digest, PolicyVersion: p.PolicyVersion,
		ProposerID: staff(p.ProposerID), MerchantID: optID(p.MerchantID), ApprovalsGiven: f.Counting, RequiredApprovals: max(f.Needed, p.PolicyNeeded),
		Signatures: []wireSignature{}, RequiredSignatures: p.Threshold, Status: string(p.Status), StatusDetail: p.StatusDetail, Ending: optText(string(p.Ending)),
		PaymentID: optID(p.PaymentID), ExecutedBy: staff(p.ExecutedBy), TxHash: optText(p.TxHash), CreatedAt: stamp(p.CreatedAt), UpdatedAt: stamp(p.UpdatedAt),
		ExpiresAt: stamp(p.ExpiresAt), CompletedAt: optTime(p.CompletedAt), Version: p.Version,
	}
	w.addKind(p, f, reader)
	if p.ProposerID == p.MerchantID {
		w.ProposerID = optID(p.ProposerID)
	}
	w.Approvals = each(f.Decisions, func(d exchange.Approval) wireProposalApproval {
		one := wireProposalApproval{OfficerID: staff(d.OfficerID), Action: string(d.Action), At: stamp(d.CreatedAt)}
		if reader.Role.Staff() {
			one.Note = optText(d.Note)
		}
		return one
	})
	for _, y := range f.Payloads {
		w.Signatures = append(w.Signatures, each(y.Signatures, signatureWire(reader))...)
		if y.Open() || y.ID == p.PayloadID {
			w.PayloadExpiresAt, w.Sequence = optTime(y.ExpiresAt), sequenceOf(y.MultisigPayload)
		}
	}
	return w
}

// forStaff shows an id to members of the staff alone.
func forStaff(reader exchange.Principal) func(uuid.UUID) *uuid.UUID {
	return func(id uuid.UUID) *uuid.UUID {
		if !reader.Role.Staff() {
			return nil
		}
		return optID(id)
	}
}

func signatureWire(reader exchange.Principal) func(exchange.MultisigSignature) wireSignature {
	staff := forStaff(reader)
	return func(g exchange.MultisigSignature) wireSignature {
		w := wireSignature{PayloadID: g.PayloadID, Owner: g.Owner, Weight: g.Weight, Held: g.Held, UserID: staff(g.UserID), At: stamp(g.At)}
		if !g.Held && (reader.Role == exchange.RoleAdmin || reader.Role == exchange.RoleTreasury) {
			w.Signature = optText(hex.EncodeToString(g.Signature))
		}
		return w
	}
}

// sequenceOf is the number of what owners of a Safe sign.
func sequenceOf(y exchange.MultisigPayload) *uint64 {
	if y.Network != exchange.Ethereum {
		return nil
	}
	return &y.Sequence
}

// wirePayload is what owners sign for a proposal.
type wirePayload struct {
	ID                 uuid.UUID       `json:"id"`
	Network            string          `json:"network"`
	Status             string          `json:"status"`
	Evidence           *string         `json:"evidence"`
	Says               string          `json:"says"`
	Address            string          `json:"address"`
	Asset              string          `json:"asset"`
	Amount             string          `json:"amount"`
	Destination        string          `json:"destination"`
	FeeLimit           string          `json:"fee_limit"`
	FeeAsset           string          `json:"fee_asset"`
	Digest             string          `json:"digest"`
	JointID            string          `json:"joint_id"`
	Sequence           *uint64         `json:"sequence"`
	NonceAccount       *string         `json:"nonce_account"`
	Nonce              *string         `json:"nonce"`
	Signers            []string        `json:"signers"`
	TypedData          json.RawMessage `json:"typed_data"`
	RawData            *string         `json:"raw_data"`
	Message            *string         `json:"message"`
	ConfirmationDigest *string         `json:"confirmation_digest"`
	RequiredSignatures int             `json:"required_signatures"`
	Signatures         []wireSignature `json:"signatures"`
	Block              uint64          `json:"block"`
	CreatedAt          timestamp       `json:"created_at"`
	ExpiresAt          *timestamp      `json:"expires_at"`
}

// getPayload shows what owners sign for a proposal: the bytes, and what they say. The newest comes first.
func (s *server) getPayload(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	p, facts, err := proposals.find(s, c, id)
	if err != nil {
		return err
	}
	all := []wirePayload{}
	for i := len(facts.Payloads) - 1; i >= 0; i-- {
		w, err := s.payloadWire(p, facts.Payloads[i], c.who)
		if err != nil {
			return err
		}
		all = append(all, w)
	}
	return c.json(http.StatusOK, map[string]any{"proposal_id": p.ID, "payloads": all})
}

// payloadWire shows a payload only after its network's driver has read its bytes and they say the payment of the proposal: owners rely on it.
func (s *server) payloadWire(p exchange.Proposal, y store.ProposalSignatures, reader exchange.Principal) (wirePayload, error) {
	read := s.Joints[p.Network]
	if read == nil {
		return wirePayload{}, exchange.Errorf(exchange.CodeUnsupported, "The network %s is not enabled here, so what its owners sign can't be checked.", p.Network)
	}
	v, err := read(y.Joint)
	if err != nil {
		return wirePayload{}, fmt.Errorf("api: payload %s: %w", y.ID, err)
	}
	if !v.shows(p) || v.ID != y.JointID || !bytes.Equal(v.Digest, y.Digest) {
		return wirePayload{}, fmt.Errorf("api: payload %s says something else than proposal %s", y.ID, p.ID)
	}
	w := wirePayload{
		ID: y.ID, Network: string(p.Network), Status: string(y.Status), Evidence: optText(y.Evidence), Says: said(p, y.MultisigPayload, v), Address: v.Account,
		Asset: string(v.Amount.Asset()), Amount: v.Amount.String(), Destination: v.To, FeeLimit: v.FeeLimit.String(), FeeAsset: string(v.FeeLimit.Asset()),
		Digest: hex.EncodeToString(y.Digest), JointID: y.JointID, Sequence: sequenceOf(y.MultisigPayload), NonceAccount: optText(y.NonceAccount), Signers: append([]string{}, y.Signers...),
		RequiredSignatures: p.Threshold, Signatures: each(y.Signatures, signatureWire(reader)), Block: y.Block, CreatedAt: stamp(y.CreatedAt), ExpiresAt: optTime(y.ExpiresAt),
	}
	switch p.Network {
	case exchange.Ethereum:
		w.TypedData = v.Body
	case exchange.Tron:
		text := hex.EncodeToString(v.Body)
		w.RawData = &text
	case exchange.Solana:
		text := base64.StdEncoding.EncodeToString(v.Body)
		w.Message, w.Nonce = &text, optText(y.RefBlock)
	}
	if reader.Role.Officer() {
		w.ConfirmationDigest = optText(y.Intent())
	}
	return w, nil
}

// said is what signing a payload does.
func said(p exchange.Proposal, y exchange.MultisigPayload, v JointView) string {
	text := saidOf(p, y, v)
	switch p.Network {
	case exchange.Ethereum:
		text += fmt.Sprintf(" It is number %d of the Safe; the house pays the network's fee.", y.Sequence)
	case exchange.Tron:
		text += fmt.Sprintf(" The account pays at most %s %s for it, and it can be sent until %s.", v.FeeLimit, v.FeeLimit.Asset(), y.ExpiresAt.UTC().Format("2006-01-02 15:04:05 UTC"))
	case exchange.Solana:
		text += fmt.Sprintf(" It can be sent while the nonce account %s has the value %s; the house pays the network's fee.", y.NonceAccount, y.RefBlock)
	}
	return text
}

// wirePendingProposal is a proposal that waits for the caller.
type wirePendingProposal struct {
	ObjectType        string     `json:"object_type"`
	Kind              string     `json:"kind"`
	ObjectID          uuid.UUID  `json:"object_id"`
	WorkflowID        string     `json:"workflow_id"`
	ProposerID        uuid.UUID  `json:"proposer_id"`
	MerchantID        *uuid.UUID `json:"merchant_id"`
	WalletID          uuid.UUID  `json:"wallet_id"`
	Network           string     `json:"network"`
	Asset             string     `json:"asset"`
	Amount            string     `json:"amount"`
	Destination       string     `json:"destination"`
	Reference         *string    `json:"reference"`
	Digest            string     `json:"digest"`
	RequiredApprovals int        `json:"required_approvals"`
	ApprovalsGiven    int        `json:"approvals_given"`
	CreatedAt         timestamp  `json:"created_at"`
	ExpiresAt         timestamp  `json:"expires_at"`
}

// pendingProposals lists the proposals that wait for the caller's decision.
func (s *server) pendingProposals(c *call) ([]wirePendingProposal, error) {
	all, err := s.Store.PendingProposals(c.ctx, c.who.UserID)
	if err != nil {
		return nil, err
	}
	facts, err := s.Store.FactsOfProposals(c.ctx, all)
	return each(all, func(p exchange.Proposal) wirePendingProposal {
		w := proposalWire(p, facts[p.ID], c.who)
		return wirePendingProposal{
			ObjectType: string(exchange.ApproveProposal), Kind: w.Kind, ObjectID: p.ID, WorkflowID: workflows.MultisigProposalID(p.ID), ProposerID: p.ProposerID, MerchantID: w.MerchantID,
			WalletID: p.WalletID, Network: w.Network, Asset: w.Asset, Amount: w.Amount, Destination: w.Destination, Reference: w.Reference, Digest: w.Digest,
			RequiredApprovals: w.RequiredApprovals, ApprovalsGiven: w.ApprovalsGiven, CreatedAt: w.CreatedAt, ExpiresAt: w.ExpiresAt,
		}
	}), err
}

// wirePendingPayload is a payload that the caller's key in our key store may sign.
type wirePendingPayload struct {
	ObjectType string     `json:"object_type"`
	ObjectID   uuid.UUID  `json:"object_id"`
	ProposalID uuid.UUID  `json:"proposal_id"`
	WalletID   uuid.UUID  `json:"wallet_id"`
	Network    string     `json:"network"`
	Digest     string     `json:"digest"`
	CreatedAt  timestamp  `json:"created_at"`
	ExpiresAt  *timestamp `json:"expires_at"`
}

// pendingPayloads lists what the caller's keys in our key store may sign.
func (s *server) pendingPayloads(c *call) ([]wirePendingPayload, error) {
	all, err := s.Store.PendingPayloads(c.ctx, c.who.UserID)
	return each(all, func(y exchange.MultisigPayload) wirePendingPayload {
		return wirePendingPayload{
			ObjectType: string(exchange.ApprovePayload), ObjectID: y.ID, ProposalID: y.ProposalID, WalletID: y.WalletID, Network: string(y.Network), Digest: y.Intent(),
			CreatedAt: stamp(y.CreatedAt), ExpiresAt: optTime(y.ExpiresAt),
		}
	}), err
}

// awaitingProposal returns the asset of a proposal that waits for a decision, and the id of the flow that takes the signal.
func (s *server) awaitingProposal(c *call, id uuid.UUID) (money.Asset, string, error) {
	p, err := s.Store.Proposal(c.ctx, store.ViewOf(c.who, exchange.ActApprove), id)
	return p.Amount.Asset(), workflows.MultisigProposalID(id), err
}
