package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ExceptionKind is the way in which money does not fit.
type ExceptionKind string

// The kinds of payment exception.
const (
	ExcUnder        ExceptionKind = "under"
	ExcOver         ExceptionKind = "over"
	ExcLate         ExceptionKind = "late"
	ExcDuplicate    ExceptionKind = "duplicate"
	ExcWrongAsset   ExceptionKind = "wrong_asset"
	ExcWrongNetwork ExceptionKind = "wrong_network"
	ExcUnmatched    ExceptionKind = "unmatched"
	ExcPaidTwice    ExceptionKind = "paid_twice" // not an arrival: a refund that was paid twice
	// ExcReconciliation is not an arrival either: the chain's balance differs from the ledger's.
	ExcReconciliation ExceptionKind = "reconciliation"
)

// ExceptionKinds lists every kind of payment exception.
func ExceptionKinds() []ExceptionKind {
	return []ExceptionKind{ExcUnder, ExcOver, ExcLate, ExcDuplicate, ExcWrongAsset, ExcWrongNetwork, ExcUnmatched, ExcPaidTwice, ExcReconciliation}
}

// ExceptionStatus is the state of a payment exception.
type ExceptionStatus string

// The states of a payment exception.
const (
	ExcOpen       ExceptionStatus = "open"
	ExcAccepted   ExceptionStatus = "accepted"
	ExcRefunding  ExceptionStatus = "refunding"
	ExcRefunded   ExceptionStatus = "refunded"
	ExcCredited   ExceptionStatus = "credited"
	ExcWrittenOff ExceptionStatus = "written_off"
	ExcMatched    ExceptionStatus = "matched" // its statement line is explained after all
)

// ExceptionMachine governs payment exceptions.
var ExceptionMachine = Machine[ExceptionStatus]{
	Name: "payment_exception", Initial: ExcOpen,
	Transitions: []Transition[ExceptionStatus]{
		{ExcOpen, ExcAccepted, ByOperator, "accepted as it is"},
		{ExcOpen, ExcAccepted, ByFlow, "too little to be sent back, or the difference vanished"},
		{ExcOpen, ExcRefunding, ByFlow, "a rule returns it"},
		{ExcOpen, ExcRefunding, ByOperator, "an officer returns it"},
		{ExcRefunding, ExcRefunded, ByFlow, "the refund completed"},
		{ExcRefunding, ExcOpen, ByOperator, "two officers ended a refund by bank that was not paid"},
		{ExcOpen, ExcCredited, ByOperator, "credited to an account"},
		{ExcOpen, ExcWrittenOff, ByOperator, "written off with a reason"},
		{ExcOpen, ExcMatched, ByFlow, "what explains its statement line came later"},
		{ExcOpen, ExcMatched, ByOperator, "an officer names what explains its statement line"},
	},
	Final: []ExceptionStatus{ExcAccepted, ExcRefunded, ExcCredited, ExcWrittenOff, ExcMatched},
}

// PaymentException is money that does not fit. It arrived, or left (ExcPaidTwice), or is a difference between the ledger and
// a chain (ExcReconciliation). Amount is the part that does not fit.
type PaymentException struct {
	ID        uuid.UUID
	Kind      ExceptionKind
	Status    ExceptionStatus
	OrderID   uuid.UUID
	AttemptID uuid.UUID // the collection that brought it, or the payout that sent it
	LineID    uuid.UUID // the line of a bank's statement that is about it
	DepositID uuid.UUID // the OTC deposit that the money names, or that ended with it
	Receipt   string
	Amount    money.Amount
	Place     ExceptionPlace // of crypto, filled for views read by users; otherwise zero
	Note      string
	CreatedAt time.Time
	UpdatedAt time.Time
	Version   int64
}

// Rail is the way that the money of a payment exception took.
type Rail string

// The rails.
const (
	RailMomo  Rail = "momo"
	RailBank  Rail = "bank"
	RailChain Rail = "chain"
)

// Rails lists the rails.
func Rails() []Rail { return []Rail{RailMomo, RailBank, RailChain} }

// Rail is the way that the money took.
func (x PaymentException) Rail() Rail {
	switch {
	case x.LineID != uuid.Nil, x.DepositID != uuid.Nil && x.AttemptID == uuid.Nil:
		return RailBank
	case x.Amount.Asset() == money.KES:
		return RailMomo
	}
	return RailChain
}

// ExceptionPlace is where the crypto of an exception is, and how it arrived. A difference between the ledger and a chain has
// only the wallet.
type ExceptionPlace struct {
	Network   Network
	TxID      string
	DepositID uuid.UUID
	WalletID  uuid.UUID
	From      string // the sender
	Address   string // the address that it is on
	// MeantWalletID is set for ExcWrongNetwork: the wallet of the same key, which the sender most probably meant.
	MeantWalletID uuid.UUID
	MeantNetwork  Network
	MeantAddress  string
}

// ExceptionDecision is an officer's decision about a payment exception: accept it as it is, write it off, or credit it.
// Credited money needs exactly one account: the wallet that holds the crypto, or the merchant whose balance receives the
// shillings.
type ExceptionDecision struct {
	ID          uuid.UUID // of the request, which makes it idempotent
	ExceptionID uuid.UUID
	Verdict     ExceptionStatus // ExcAccepted, ExcWrittenOff or ExcCredited
	WalletID    uuid.UUID
	MerchantID  uuid.UUID
	Reason      string
}

// MaxExceptionReason is the most characters of the reason for a decision.
const MaxExceptionReason = 500
