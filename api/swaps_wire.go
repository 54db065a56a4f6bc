package api

import (
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

// wireSwapLeg is a payment of a swap on its network.
type wireSwapLeg struct {
	Role          string    `json:"role"`
	TxHash        *string   `json:"tx_hash"`
	Status        string    `json:"status"`
	Confirmations int       `json:"confirmations"`
	Asset         string    `json:"asset"`
	Amount        string    `json:"amount"`
	At            timestamp `json:"at"`
}

// wireSwap is a swap. What only staff see is null for others.
type wireSwap struct {
	ID                uuid.UUID               `json:"id"`
	OwnerID           *uuid.UUID              `json:"owner_id"`
	MerchantID        *uuid.UUID              `json:"merchant_id"`
	RequestedBy       uuid.UUID               `json:"requested_by"`
	WalletID          uuid.UUID               `json:"wallet_id"`
	Network           string                  `json:"network"`
	Status            string                  `json:"status"`
	StatusDetail      string                  `json:"status_detail"`
	FromAsset         string                  `json:"from_asset"`
	FromAmount        string                  `json:"from_amount"`
	ToAsset           string                  `json:"to_asset"`
	ToAmount          string                  `json:"to_amount"`
	Rate              string                  `json:"rate"`
	FeeAmount         string                  `json:"fee_amount"`
	PricingProfileID  *uuid.UUID              `json:"pricing_profile_id"`
	FeeProfileID      *uuid.UUID              `json:"fee_profile_id"` // an alias
	QuoteID           uuid.UUID               `json:"quote_id"`
	Legs              []wireSwapLeg           `json:"legs"`
	ReservationID     uuid.UUID               `json:"reservation_id"`
	ApprovalsRequired int                     `json:"approvals_required"`
	ApprovalsGiven    int                     `json:"approvals_given"`
	ApprovalDigest    *string                 `json:"approval_digest"`
	Difference        *[]exchange.SwapBalance `json:"difference"`
	CreatedAt         timestamp               `json:"created_at"`
	UpdatedAt         timestamp               `json:"updated_at"`
	ExpiresAt         timestamp               `json:"expires_at"`
	CompletedAt       *timestamp              `json:"completed_at"`
	Retry             string                  `json:"retry,omitempty"`
	Version           int64                   `json:"version"`
}

func swapLegWire(l exchange.SwapLeg) wireSwapLeg {
	return wireSwapLeg{string(l.Role), optText(l.TxHash), string(l.Status), l.Confirmations, string(l.Amount.Asset()), l.Amount.String(), stamp(l.At)}
}

// swapWire converts a swap for a reader.
func swapWire(o exchange.Swap, f store.SwapFacts, reader exchange.Principal) wireSwap {
	w := wireSwap{
		ID: o.ID, OwnerID: optID(o.OwnerID), MerchantID: optID(o.VendorID), RequestedBy: o.RequestedBy, WalletID: o.WalletID, Network: string(o.Network),
		Status: string(o.Status), StatusDetail: o.StatusDetail, FromAsset: string(o.From.Asset()), FromAmount: o.From.String(), ToAsset: string(o.To.Asset()),
		ToAmount: o.To.String(), Rate: o.Rate.String(), FeeAmount: o.Fee.String(), PricingProfileID: optID(o.ProfileID), FeeProfileID: optID(o.ProfileID),
		QuoteID: o.QuoteID, Legs: each(f.Legs, swapLegWire), ReservationID: o.ReservationID, ApprovalsRequired: f.Needed, ApprovalsGiven: f.Counting,
		CreatedAt: stamp(o.CreatedAt), UpdatedAt: stamp(o.UpdatedAt), ExpiresAt: stamp(o.ExpiresAt), CompletedAt: optTime(o.CompletedAt), Version: o.Version,
	}
	if reader.Role.Staff() {
		w.ApprovalDigest = optText(o.Digest)
		var off []exchange.SwapBalance
		if json.Unmarshal([]byte(o.Difference), &off) == nil {
			w.Difference = &off
		}
	}
	return w
}

// wirePendingSwap is a swap that waits for the caller.
type wirePendingSwap struct {
	ObjectType        string     `json:"object_type"`
	ObjectID          uuid.UUID  `json:"object_id"`
	WorkflowID        string     `json:"workflow_id"`
	RequestedBy       uuid.UUID  `json:"requested_by"`
	OwnerID           *uuid.UUID `json:"owner_id"`
	WalletID          uuid.UUID  `json:"wallet_id"`
	Network           string     `json:"network"`
	Asset             string     `json:"asset"`
	Amount            string     `json:"amount"`
	ToAsset           string     `json:"to_asset"`
	ToAmount          string     `json:"to_amount"`
	Digest            string     `json:"digest"`
	ApprovalsRequired int        `json:"approvals_required"`
	ApprovalsGiven    int        `json:"approvals_given"`
	CreatedAt         timestamp  `json:"created_at"`
	ExpiresAt         timestamp  `json:"expires_at"`
}

// pendingSwaps lists the swaps that wait for the caller's decision.
func (s *server) pendingSwaps(c *call) ([]wirePendingSwap, error) {
	all, err := s.Store.PendingSwaps(c.ctx, c.who.UserID)
	if err != nil {
		return nil, err
	}
	facts, err := s.Store.FactsOfSwaps(c.ctx, all)
	return each(all, func(o exchange.Swap) wirePendingSwap {
		f := facts[o.ID]
		return wirePendingSwap{
			ObjectType: string(exchange.ApproveSwap), ObjectID: o.ID, WorkflowID: workflows.SwapID(o.ID), RequestedBy: o.RequestedBy, OwnerID: optID(o.OwnerID),
			WalletID: o.WalletID, Network: string(o.Network), Asset: string(o.From.Asset()), Amount: o.From.String(), ToAsset: string(o.To.Asset()),
			ToAmount: o.To.String(), Digest: o.Digest, ApprovalsRequired: f.Needed, ApprovalsGiven: f.Counting, CreatedAt: stamp(o.CreatedAt), ExpiresAt: stamp(o.ExpiresAt),
		}
	}), err
}

// awaitingSwap returns the asset of a swap that waits for a decision, and the id of the flow that takes the signal.
func (s *server) awaitingSwap(c *call, id uuid.UUID) (money.Asset, string, error) {
	o, err := s.Store.Swap(c.ctx, store.ViewOf(c.who, exchange.ActApprove), id)
	return o.From.Asset(), workflows.SwapID(id), err
}
