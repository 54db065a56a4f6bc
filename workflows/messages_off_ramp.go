package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"

	"kivuko/exchange"
)

// UpdateConfirmBank notifies the flow that an officer confirmed or refused a bank payout: BankConfirmRef, answers Ack.
const UpdateConfirmBank = "confirm-bank"

// The updates by which the seller decides about crypto of another amount: IntentRef, answers Ack.
const (
	UpdateAcceptDeposit = "accept-deposit" // the sale is priced by it
	UpdateReturnDeposit = "return-deposit" // the sale ends, and all of it goes back
)

// SignalRefundAddress notifies the flow that the customer set the order's refund address. It has no argument: the address
// is in the row.
const SignalRefundAddress = "refund-address"

// SignalResume makes a flow look again at what it waits for: whether its child runs, or what the chain says by now. It has no argument.
const SignalResume = "resume"

// SignalFloat notifies a flow that there may be more payout float now. It has no argument.
const SignalFloat = "float"

// FlowsForFloat returns the flows of which one waits for float: the sale's own, or those that can owe the refund.
func FlowsForFloat(w exchange.FloatWaiter) []string {
	if w.WorkflowID != "" {
		return []string{w.WorkflowID}
	}
	if w.WithdrawalID != uuid.Nil {
		return []string{WithdrawalID(w.WithdrawalID)}
	}
	if w.RefundID == uuid.Nil {
		return []string{OffRampID(w.OrderID)}
	}
	return []string{OnRampID(w.OrderID), LatePaymentID(w.AttemptID)}
}

// OffRampInput starts the flow of an order that sells crypto.
type OffRampInput struct {
	IntentID uuid.UUID `json:"intent_id"`
}

// OffRampResult is how the flow ended.
type OffRampResult struct {
	OrderID uuid.UUID            `json:"order_id"`
	Status  exchange.OrderStatus `json:"status,omitempty"` // empty when the order was refused and never existed
	Detail  string               `json:"detail,omitempty"`
}

// BankConfirmRef names the row of an officer's confirmation or refusal. It proves nothing: the flow reads the rows.
type BankConfirmRef struct {
	ConfirmationID uuid.UUID `json:"confirmation_id"`
}

// OffRampAttributes are the search attributes with which the API starts the flow of a sale.
func OffRampAttributes(r exchange.OrderRequest) temporal.SearchAttributes {
	shown := []temporal.SearchAttributeUpdate{
		AttrStatus.ValueSet(string(exchange.OrderPending)), AttrStage.ValueSet(StageDeposit), AttrOrderType.ValueSet(string(r.Type)),
		AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(WaitsForDepositor), AttrDeadline.ValueSet(r.ExpiresAt),
	}
	if r.Seen != (exchange.SeenOffer{}) {
		shown = append(shown, AttrNetwork.ValueSet(string(r.Seen.Network)), AttrAsset.ValueSet(string(r.Seen.Asset)),
			AttrMerchantID.ValueSet(r.Seen.MerchantID.String()))
	}
	return temporal.NewSearchAttributes(shown...)
}

// OffRampSummary is the summary of a sale's flow in the Web UI.
func OffRampSummary(r exchange.OrderRequest) string {
	if r.Crypto.Positive() {
		return "Sell " + r.Crypto.String() + " " + string(r.Crypto.Asset())
	}
	return "Sell crypto for " + r.Fiat.String() + " " + string(r.Fiat.Asset())
}
