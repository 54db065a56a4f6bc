package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// LiveKind is a kind of row that a flow carries to its end.
type LiveKind string

// The kinds of live rows. The object of a flow is the one that it is named after.
const (
	LivePurchase LiveKind = "purchase" // an order that buys crypto
	LiveSale     LiveKind = "sale"     // an order that sells crypto
	LiveTransfer LiveKind = "transfer"
	LiveLate     LiveKind = "late"   // late money of a prompt, which waits for a decision or for its refund
	LiveReturn   LiveKind = "return" // unmatched crypto on its way back; its object is the payment exception
	LiveOTC      LiveKind = "otc_deposit"
	// A withdrawal that has not ended.
	LiveWithdrawal LiveKind = "otc_withdrawal"
	LiveFeeSweep   LiveKind = "fee_sweep"
	LiveSwap       LiveKind = "swap"
	LiveMultisig   LiveKind = "multisig" // an account of several owners that is not a wallet yet
	LiveProposal   LiveKind = "multisig_proposal"
	LiveBankRefund LiveKind = "bank_refund" // a refund by bank that is not paid
	LiveTopUp      LiveKind = "top_up"      // a top-up that was signed, whose payment may have ended before it is final
)

// LiveRow is a row that has not come to its end, with what its flow is started with.
type LiveRow struct {
	Kind       LiveKind
	ObjectID   uuid.UUID
	IntentID   uuid.UUID // that opened an order, a transfer, an OTC deposit, a withdrawal, a swap or a proposal
	RequestID  uuid.UUID // the request to return crypto
	OrderID    uuid.UUID
	Type       OrderType
	Network    Network
	Asset      money.Asset
	MerchantID uuid.UUID
	UpdatedAt  time.Time
}

// LivePlace is a row's position in the list of live rows.
type LivePlace struct {
	Kind     LiveKind  `json:"kind,omitempty"`
	ObjectID uuid.UUID `json:"object_id,omitzero"`
}

// Place returns the row's position in the list.
func (r LiveRow) Place() LivePlace { return LivePlace{r.Kind, r.ObjectID} }

// PurchaseProgress is what was done for a purchase before its flow was started again.
type PurchaseProgress struct {
	Prompts int         `json:"prompts,omitempty"` // that were stored
	Owed    []uuid.UUID `json:"owed,omitempty"`    // refunds of the order that are not completed
}
