package workflows

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
)

// Updates are validated, answered and deduplicated by their id.
const (
	UpdateOpen         = "open"          // on-ramp, with start: no argument, answers Opened
	UpdateCancel       = "cancel"        // orders, transfer, swap, proposal: IntentRef, answers Ack, TransferAck, SwapAck or ProposalAck
	UpdateRetryPayment = "retry-payment" // on-ramp: IntentRef, answers Ack
	UpdateCommand      = "command"       // every flow that parks: CommandRef, answers Ack
	UpdateApprove      = "approve"       // transfer, withdrawal, swap, proposal: ApprovalRef, answers TransferAck, WithdrawalAck, SwapAck or ProposalAck
	UpdateReject       = "reject"        // as approve
	UpdatePayload      = "payload"       // transfer of a cold wallet: IntentRef, answers TransferAck
	UpdateImport       = "import"        // transfer of a cold wallet: IntentRef, answers TransferAck
	UpdateStep         = "step"          // OTC deposit, withdrawal, proposal: IntentRef of any verb, answers OTCAck, WithdrawalAck or ProposalAck
)

// Signals are accepted even while no worker runs, and never answered. None of them carries authority.
const (
	SignalCallback = "payment-callback" // CallbackRef
	SignalRetry    = "retry"            // no argument needed
	SignalGas      = "gas"              // no argument: a block has the top-up that a payment waits for
	SignalRefund   = "refund"           // OperatorSignal with a command's id
	SignalResolve  = "resolve"          // OperatorSignal with a command's id
	SignalApprove  = "approve"          // OperatorSignal with a token
	SignalReject   = "reject"           // OperatorSignal with a token
)

// AsExchangeError turns an error that came through Temporal back into the *exchange.Error that it was.
func AsExchangeError(err error) error { return activities.AsExchangeError(err) }

// Opened answers the update "open".
type Opened struct {
	OrderID uuid.UUID `json:"order_id"`
}

// Ack answers an update that was accepted.
type Ack struct {
	Status exchange.OrderStatus `json:"status,omitempty"` // of the order, where there is one
	Detail string               `json:"detail,omitempty"`
}

// CallbackRef notifies a flow that a callback of the operator was stored. Without an attempt it may concern any of the
// flow's attempts.
type CallbackRef struct {
	CallbackID uuid.UUID `json:"callback_id"`
	AttemptID  uuid.UUID `json:"attempt_id,omitzero"`
}

// CommandRef names a row that the API wrote after it had checked the operator's rights. The flow proves it before it acts.
type CommandRef struct {
	CommandID uuid.UUID `json:"command_id"`
}

// IntentRef names what an authenticated caller asks of a flow. The flow reads the row.
type IntentRef struct {
	IntentID uuid.UUID           `json:"intent_id"`
	Verb     exchange.IntentKind `json:"verb,omitempty"` // of a step; only what operators read of it in the timeline
}

// OperatorSignal is the argument of the signals that operators and officers send from the Web UI, and the only message that
// flows read unencrypted. It names nobody and carries no right by itself: the flow proves the command or the token.
type OperatorSignal struct {
	CommandID uuid.UUID `json:"command_id,omitzero"`
	Token     string    `json:"token,omitempty"`
}

// UnmarshalJSON reads whatever was typed. What is no command's id and no token is left out, so that the details of the flow
// can show that the signal was refused.
func (s *OperatorSignal) UnmarshalJSON(text []byte) error {
	var typed map[string]any
	_ = json.Unmarshal(text, &typed) // no object has no fields
	*s = OperatorSignal{}
	if id, ok := typed["command_id"].(string); ok {
		s.CommandID, _ = uuid.Parse(id)
	}
	s.Token, _ = typed["token"].(string)
	return nil
}

// OnRampInput starts the flow of an order that buys crypto.
type OnRampInput struct {
	IntentID uuid.UUID `json:"intent_id"`
}

// OnRampResult is how the flow ended.
type OnRampResult struct {
	OrderID uuid.UUID            `json:"order_id"`
	Status  exchange.OrderStatus `json:"status,omitempty"` // empty when the order was refused and never existed
	Detail  string               `json:"detail,omitempty"`
}

// CryptoPayoutInput starts the flow of a chain payment.
type CryptoPayoutInput struct {
	PaymentID uuid.UUID        `json:"payment_id"`
	OrderID   uuid.UUID        `json:"order_id"`
	Network   exchange.Network `json:"network"`
	// TransferID is set when the payment carries out a transfer and not an order.
	TransferID uuid.UUID `json:"transfer_id,omitzero"`
	// RefundID is set when the payment returns crypto, and ExceptionID when it moves crypto that we keep.
	RefundID    uuid.UUID `json:"refund_id,omitzero"`
	ExceptionID uuid.UUID `json:"exception_id,omitzero"`
	// WithdrawalID is set when the payment brings crypto that the house buys to its treasury.
	WithdrawalID uuid.UUID `json:"withdrawal_id,omitzero"`
	FeeSweepID   uuid.UUID `json:"fee_sweep_id,omitzero"` // when it brings earned fees to the treasury
	SwapID       uuid.UUID `json:"swap_id,omitzero"`      // when it is a leg of a swap
	MultisigID   uuid.UUID `json:"multisig_id,omitzero"`  // when it opens an account of several owners
	ProposalID   uuid.UUID `json:"proposal_id,omitzero"`  // when it carries out a proposal, or moves its nonce account
	// GasFor is set when the payment brings gas: the payment that needs it, whose flow gets the signal when it has arrived.
	GasFor uuid.UUID `json:"gas_for,omitzero"`
	// WalletID is set when the payment brings gas ahead of need: the wallet that gets it.
	WalletID uuid.UUID `json:"wallet_id,omitzero"`
	// Since is when the flow that owes the payment began to deliver its transaction; zero where it did not.
	Since time.Time `json:"since,omitzero"`
	// Watched is set when the flow that owes the payment waits itself for what withholds a signature, and meanwhile looks at the chain.
	Watched bool `json:"watched,omitempty"`
}

// CryptoPayoutResult is how a chain payment ended: completed, or parked with a reason.
type CryptoPayoutResult struct {
	Completed bool   `json:"completed,omitempty"`
	Reason    string `json:"reason,omitempty"` // a Reason of reasons.go when it is not completed
	// Superseded is set when another transaction took the number of what several owners signed, so that it can never be carried out.
	Superseded bool   `json:"superseded,omitempty"`
	TxID       string `json:"tx_id,omitempty"`
	Waits      string `json:"waits,omitempty"` // what withholds the signature of a payment that is watched; nothing was signed
}

// LatePaymentInput starts the watch over an attempt whose order, or other object, has ended.
type LatePaymentInput struct {
	AttemptID uuid.UUID `json:"attempt_id"`
	// OrderID lets operators reach the watch by commands about the order before it has seen the attempt; zero for another
	// object.
	OrderID uuid.UUID           `json:"order_id,omitzero"`
	Object  exchange.MomoObject `json:"object,omitzero"`
}

// WatchOf is the input of the watch over an attempt.
func WatchOf(a exchange.PaymentAttempt) LatePaymentInput {
	return LatePaymentInput{AttemptID: a.ID, OrderID: a.OrderID, Object: a.Object}
}

// another returns the object of the watch if it is no order.
func (in LatePaymentInput) another() (exchange.MomoObject, bool) {
	return in.Object, in.Object.Type != "" && in.Object.Type != exchange.MomoOrder
}

// LatePaymentResult is how the watch ended.
type LatePaymentResult struct {
	Outcome string `json:"outcome"` // "clean", "accounted", "refunded" or "resolved"
}

// CreateWalletInput starts the flow that creates a wallet.
type CreateWalletInput struct {
	IntentID uuid.UUID `json:"intent_id"`
}

// WalletCreated is the result of the flow that creates a wallet.
type WalletCreated struct {
	WalletID uuid.UUID `json:"wallet_id"`
	Address  string    `json:"address"`
}

// TransferInput starts the flow of a transfer.
type TransferInput struct {
	IntentID uuid.UUID `json:"intent_id"`
}

// TransferResult is how the flow ended.
type TransferResult struct {
	TransferID uuid.UUID               `json:"transfer_id"`
	Status     exchange.TransferStatus `json:"status,omitempty"` // empty when the transfer was refused and never existed
	Detail     string                  `json:"detail,omitempty"`
}

// TransferOpened answers the update "open" of a transfer.
type TransferOpened struct {
	TransferID uuid.UUID `json:"transfer_id"`
}

// TransferAck answers an update that changed a transfer with the transfer's state.
type TransferAck struct {
	Status exchange.TransferStatus `json:"status,omitempty"`
	Detail string                  `json:"detail,omitempty"`
}

// ApprovalRef carries an officer's right to one decision. The token is opaque, short-lived and valid for one use; the flow
// proves it before it acts.
type ApprovalRef struct {
	Token string `json:"token"`
}
