package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ExceptionKind says in which way money that arrived does not fit.
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
	ExcPaidTwice    ExceptionKind = "paid_twice" // not money that arrived: a refund that was paid out once more
	// ExcReconciliation is no money that arrived either: the chain holds more or less than the ledger says.
	ExcReconciliation ExceptionKind = "reconciliation"
)

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
)

// ExceptionMachine governs payment exceptions.
var ExceptionMachine = Machine[ExceptionStatus]{
	Name: "payment_exception", Initial: ExcOpen,
	Transitions: []Transition[ExceptionStatus]{
		{ExcOpen, ExcAccepted, ByOperator, "accepted as it is"},
		{ExcOpen, ExcAccepted, ByFlow, "too little to be sent back, or a difference vanished"},
		{ExcOpen, ExcRefunding, ByFlow, "policy returns it"},
		{ExcOpen, ExcRefunding, ByOperator, "a person returns it"},
		{ExcRefunding, ExcRefunded, ByFlow, "the refund completed"},
		{ExcOpen, ExcCredited, ByOperator, "credited to an account"},
		{ExcOpen, ExcWrittenOff, ByOperator, "written off with a reason"},
	},
	Final: []ExceptionStatus{ExcAccepted, ExcRefunded, ExcCredited, ExcWrittenOff},
}

// PaymentException is money that does not fit: that arrived, of the kind ExcPaidTwice that left, or of the
// kind ExcReconciliation that the ledger and a chain disagree about. Amount is the part that does not fit.
type PaymentException struct {
	ID        uuid.UUID
	Kind      ExceptionKind
	Status    ExceptionStatus
	OrderID   uuid.UUID
	AttemptID uuid.UUID // the collection that brought it, or the payout that took it
	Receipt   string
	Amount    money.Amount
	Place     ExceptionPlace // of crypto, where it was read for a person; else zero
	Note      string
	CreatedAt time.Time
	UpdatedAt time.Time
	Version   int64
}

// ExceptionPlace is where the crypto of an exception lies, and how it came there. Of a difference between the ledger
// and a chain it is the wallet alone.
type ExceptionPlace struct {
	Network   Network
	TxID      string
	DepositID uuid.UUID
	WalletID  uuid.UUID
	From      string // who sent it
	Address   string // where it lies
	// Of the kind ExcWrongNetwork, the wallet whose key it is: the one that was most probably meant.
	MeantWalletID uuid.UUID
	MeantNetwork  Network
	MeantAddress  string
}

// ExceptionDecision is a person's word about money that does not fit: it is accepted as it is, written off, or
// credited. Of credited money exactly one account is named: the wallet in which money of a chain lies, or the
// merchant whose balance shillings are added to.
type ExceptionDecision struct {
	ID          uuid.UUID // of the request: decided once under it
	ExceptionID uuid.UUID
	Verdict     ExceptionStatus // ExcAccepted, ExcWrittenOff or ExcCredited
	WalletID    uuid.UUID
	MerchantID  uuid.UUID
	Reason      string
}

// MaxExceptionReason is the length of the reason for a decision, in characters.
const MaxExceptionReason = 500
