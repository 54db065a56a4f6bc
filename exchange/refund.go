package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// RefundStatus is the state of a refund.
type RefundStatus string

// The states of a refund.
const (
	RefundPending     RefundStatus = "pending"
	RefundProcessing  RefundStatus = "processing"
	RefundCompleted   RefundStatus = "completed"
	RefundFailed      RefundStatus = "failed"
	RefundNeedsReview RefundStatus = "needs_review"
)

// RefundMachine governs refunds.
var RefundMachine = Machine[RefundStatus]{
	Name: "refund", Initial: RefundPending,
	Transitions: []Transition[RefundStatus]{
		{RefundPending, RefundProcessing, ByFlow, "the payout is written and about to be submitted, or the payment in crypto is approved"},
		{RefundPending, RefundNeedsReview, ByFlow, "the operator names another payer, or says that an order's payee was paid after all; or an officer refused it"},
		{RefundProcessing, RefundCompleted, ByFlow, "the payout is proven, or the payment in crypto is final"},
		{RefundProcessing, RefundFailed, ByFlow, "the operator definitely refused, or nothing can be sent to the address"},
		{RefundFailed, RefundNeedsReview, ByFlow, "a person must decide"},
		{RefundNeedsReview, RefundProcessing, ByOperator, "tried again as a new payout"},
		{RefundNeedsReview, RefundCompleted, ByOperator, "paid by other means, with a reference"},
	},
	Final: []RefundStatus{RefundCompleted},
}

// RefundPayerDiffers is the detail of a refund that waits for a person because the operator's notice or
// statement names another payer than the phone that was prompted.
const RefundPayerDiffers = "payer_differs"

// Refund gives back money of one collection, or of one deposit on a chain. The refunds of a collection never exceed
// what it brought, and a deposit is refunded once; the database says so.
type Refund struct {
	ID          uuid.UUID
	Rail        RefundRail
	OrderID     uuid.UUID // zero for crypto that belongs to no order
	AttemptID   uuid.UUID // the collection whose money goes back; zero for crypto
	ExceptionID uuid.UUID // set when a payment exception asked for it
	Amount      money.Amount
	Phone       Phone // who gets it: the payer; zero for crypto
	Reason      string
	Status      RefundStatus
	Detail      string // why it waits for a person
	Receipt     string // the operator's, or the id of the transaction
	CreatedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt time.Time
	Version     int64

	// Of crypto alone.
	DepositID   uuid.UUID // that brought it; zero where a payment of ours did
	WalletID    uuid.UUID // where it lies
	Network     Network
	Address     string // where it goes; empty until somebody says
	HoldID      uuid.UUID
	Value       money.Amount // in shillings, as it counted when the refund was opened
	Digest      string       // of Intent, what officers agree to
	RequestedBy uuid.UUID    // the person who asked for it; zero where a flow opened it
	AddressedBy uuid.UUID    // the person who gave the address, where it is not the order's
}
