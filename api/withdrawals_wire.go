package api

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

// wireWithdrawalApproval is an officer's decision about a withdrawal. Who decided, and why, only staff see.
type wireWithdrawalApproval struct {
	OfficerID *uuid.UUID `json:"officer_id"`
	Action    string     `json:"action"`
	Note      *string    `json:"note"`
	Counts    bool       `json:"counts"`
	CreatedAt timestamp  `json:"created_at"`
}

// wireWithdrawn is where a withdrawal goes.
type wireWithdrawn struct {
	ID            uuid.UUID `json:"id"`
	Kind          string    `json:"kind"`
	Label         *string   `json:"label"`
	PhoneNumber   *string   `json:"phone_number"`
	BankName      *string   `json:"bank_name"`
	BankCode      *string   `json:"bank_code"`
	Branch        *string   `json:"branch"`
	SwiftCode     *string   `json:"swift_code"`
	AccountName   *string   `json:"account_name"`
	AccountNumber *string   `json:"account_number"`
	Network       *string   `json:"network"`
	Address       *string   `json:"address"`
}

// wireWithdrawal is a withdrawal. What only staff see is null for others.
type wireWithdrawal struct {
	ID                uuid.UUID                `json:"id"`
	MerchantID        uuid.UUID                `json:"merchant_id"`
	RequestedBy       uuid.UUID                `json:"requested_by"`
	Status            string                   `json:"status"`
	StatusDetail      string                   `json:"status_detail"`
	SourceAsset       string                   `json:"source_asset"`
	SourceNetwork     *string                  `json:"source_network"`
	SourceWalletID    *uuid.UUID               `json:"source_wallet_id"`
	SourceAmount      string                   `json:"source_amount"`
	PayoutAsset       string                   `json:"payout_asset"`
	PayoutMethod      string                   `json:"payout_method"`
	PayoutAmount      string                   `json:"payout_amount"`
	FeeAmount         string                   `json:"fee_amount"`
	Rate              *string                  `json:"rate"`
	FXRateQuoteID     *uuid.UUID               `json:"fx_rate_quote_id"`
	PricingProfileID  *uuid.UUID               `json:"pricing_profile_id"`
	FeeProfileID      *uuid.UUID               `json:"fee_profile_id"` // an alias
	DestinationID     uuid.UUID                `json:"destination_id"`
	Destination       wireWithdrawn            `json:"destination"`
	ApprovalsRequired int                      `json:"approvals_required"`
	ApprovalsGiven    int                      `json:"approvals_given"`
	Approvals         []wireWithdrawalApproval `json:"approvals"`
	ApprovalDigest    *string                  `json:"approval_digest"`
	ExecutedBy        *uuid.UUID               `json:"executed_by"`
	Confirmations     *[]wireConfirmation      `json:"confirmations"`
	BankReference     *string                  `json:"bank_reference"`
	MomoReceipt       *string                  `json:"momo_receipt_number"`
	TransferID        *uuid.UUID               `json:"transfer_id"`
	TxHash            *string                  `json:"tx_hash"`
	HoldID            uuid.UUID                `json:"hold_id"`
	Reason            *string                  `json:"reason"`
	CreatedAt         timestamp                `json:"created_at"`
	UpdatedAt         timestamp                `json:"updated_at"`
	ExecutedAt        *timestamp               `json:"executed_at"`
	CompletedAt       *timestamp               `json:"completed_at"`
	Version           int64                    `json:"version"`
}

func withdrawnWire(d exchange.Destination) wireWithdrawn {
	return wireWithdrawn{
		ID: d.ID, Kind: string(d.Kind), Label: optText(d.Label), PhoneNumber: optText(d.Phone.Digits()), BankName: optText(d.BankName), BankCode: optText(d.BankCode),
		Branch: optText(d.Branch), SwiftCode: optText(d.SwiftCode), AccountName: optText(d.AccountName), AccountNumber: optText(d.AccountNumber),
		Network: optText(string(d.Network)), Address: optText(d.Address),
	}
}

func withdrawalWire(o exchange.Withdrawal, f store.WithdrawalFacts, reader exchange.Principal) wireWithdrawal {
	w := wireWithdrawal{
		ID: o.ID, MerchantID: o.MerchantID, RequestedBy: o.RequestedBy, Status: string(o.Status), StatusDetail: o.Detail, SourceAsset: string(o.Source.Asset()),
		SourceNetwork: optText(string(o.SourceNetwork)), SourceWalletID: optID(o.SourceWalletID), SourceAmount: o.Source.String(), PayoutAsset: string(o.Payout.Asset()),
		PayoutMethod: string(o.Method), PayoutAmount: o.Payout.String(), FeeAmount: o.Fee.String(), FXRateQuoteID: optID(o.QuoteID), PricingProfileID: optID(o.ProfileID), FeeProfileID: optID(o.ProfileID),
		DestinationID: o.DestinationID, Destination: withdrawnWire(f.Destination), ApprovalsRequired: f.Needed, ApprovalsGiven: f.Counting,
		Approvals: []wireWithdrawalApproval{}, TransferID: optID(o.TransferID), TxHash: optText(o.TxHash), HoldID: o.HoldID,
		CreatedAt: stamp(o.CreatedAt), UpdatedAt: stamp(o.UpdatedAt), ExecutedAt: optTime(o.ExecutedAt), CompletedAt: optTime(o.CompletedAt), Version: o.Version,
	}
	if reader.Role.Staff() || o.Status != exchange.WithdrawalHold { // why officers hold it is no business of its merchant
		w.Reason = optText(o.Reason)
	}
	if !o.Rate.IsZero() {
		w.Rate = optText(o.Rate.String())
	}
	switch o.Method {
	case exchange.WithdrawByMomo:
		w.MomoReceipt = optText(o.Receipt)
	case exchange.WithdrawByBank:
		w.BankReference = optText(o.Receipt)
	case exchange.WithdrawByChain:
	}
	for _, a := range f.Approvals {
		said := wireWithdrawalApproval{Action: string(a.Action), Counts: a.Counts, CreatedAt: stamp(a.At)}
		if reader.Role.Staff() {
			said.OfficerID, said.Note = optID(a.OfficerID), optText(a.Note)
		}
		w.Approvals = append(w.Approvals, said)
	}
	if reader.Role.Staff() {
		said := each(f.Confirmations, confirmationWire)
		w.ApprovalDigest, w.ExecutedBy, w.Confirmations = optText(o.Digest), optID(o.ExecutedBy), &said
	}
	return w
}

// wirePendingWithdrawal is a withdrawal that waits for the caller.
type wirePendingWithdrawal struct {
	ObjectType        string        `json:"object_type"`
	ObjectID          uuid.UUID     `json:"object_id"`
	WorkflowID        string        `json:"workflow_id"`
	RequestedBy       uuid.UUID     `json:"requested_by"`
	MerchantID        uuid.UUID     `json:"merchant_id"`
	Asset             string        `json:"asset"`
	Amount            string        `json:"amount"`
	SourceAsset       string        `json:"source_asset"`
	SourceAmount      string        `json:"source_amount"`
	PayoutMethod      string        `json:"payout_method"`
	Destination       wireWithdrawn `json:"destination"`
	Digest            string        `json:"digest"`
	ApprovalsRequired int           `json:"approvals_required"`
	ApprovalsGiven    int           `json:"approvals_given"`
	CreatedAt         timestamp     `json:"created_at"`
}

// pendingWithdrawals lists the withdrawals that wait for the caller's decision.
func (s *server) pendingWithdrawals(c *call) ([]wirePendingWithdrawal, error) {
	all, err := s.Store.PendingWithdrawals(c.ctx, c.who.UserID)
	if err != nil {
		return nil, err
	}
	facts, err := s.Store.FactsOfWithdrawals(c.ctx, all)
	return each(all, func(w exchange.Withdrawal) wirePendingWithdrawal {
		f := facts[w.ID]
		return wirePendingWithdrawal{
			ObjectType: string(exchange.ApproveWithdrawal), ObjectID: w.ID, WorkflowID: workflows.WithdrawalID(w.ID), RequestedBy: w.RequestedBy, MerchantID: w.MerchantID,
			Asset: string(w.Payout.Asset()), Amount: w.Payout.String(), SourceAsset: string(w.Source.Asset()), SourceAmount: w.Source.String(), PayoutMethod: string(w.Method),
			Destination: withdrawnWire(f.Destination), Digest: w.Digest, ApprovalsRequired: f.Needed, ApprovalsGiven: f.Counting, CreatedAt: stamp(w.CreatedAt),
		}
	}), err
}

// awaitingWithdrawal returns the asset of a withdrawal that waits for a decision, and the id of the flow that takes the signal.
func (s *server) awaitingWithdrawal(c *call, id uuid.UUID) (money.Asset, string, error) {
	w, err := s.Store.Withdrawal(c.ctx, store.ViewOf(c.who, exchange.ActApprove), id)
	return w.Payout.Asset(), workflows.WithdrawalID(id), err
}

// flowsOfWithdrawal returns the ids of the flows that take commands about a withdrawal: its own, and those that check late notices about its
// payouts.
func (s *server) flowsOfWithdrawal(ctx context.Context, id uuid.UUID) ([]string, error) {
	payouts, err := s.Store.PayoutsOf(ctx, exchange.WithdrawalObject(id))
	flows := []string{workflows.WithdrawalID(id)}
	for _, a := range payouts {
		flows = append(flows, workflows.LatePayoutID(a.ID))
	}
	return flows, err
}

// passFailureOn has the flow of a withdrawal that two officers ended read its row. It finds by itself what it was not told.
func (s *server) passFailureOn(c *call, change exchange.ControlChange) {
	if change.Kind != exchange.ControlWithdrawalFailure || change.Status != exchange.ControlConfirmed {
		return
	}
	var about struct {
		WithdrawalID uuid.UUID `json:"withdrawal_id"`
	}
	err := json.Unmarshal(change.Change, &about)
	if err == nil {
		err = s.Flows.LookAtWithdrawal(c.ctx, about.WithdrawalID)
	}
	if err != nil {
		s.log.Warn("a withdrawal's flow was not notified of its end", "change", change.ID, "withdrawal", about.WithdrawalID, "error", err)
	}
}
