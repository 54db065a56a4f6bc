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
		{RefundPending, RefundProcessing, ByFlow, "the payout is written and about to be submitted"},
		{RefundPending, RefundNeedsReview, ByFlow, "the operator names another payer than the phone that was prompted"},
		{RefundProcessing, RefundCompleted, ByFlow, "the payout is proven"},
		{RefundProcessing, RefundFailed, ByFlow, "the operator definitely refused"},
		{RefundFailed, RefundNeedsReview, ByFlow, "a person must decide"},
		{RefundNeedsReview, RefundProcessing, ByOperator, "tried again as a new payout"},
		{RefundNeedsReview, RefundCompleted, ByOperator, "paid by other means, with a reference"},
	},
	Final: []RefundStatus{RefundCompleted},
}

// RefundPayerDiffers is the detail of a refund that waits for a person because the operator's notice or
// statement names another payer than the phone that was prompted.
const RefundPayerDiffers = "payer_differs"

// Refund gives back money of one collection. The refunds of a collection never exceed what it
// brought; the database says so.
type Refund struct {
	ID          uuid.UUID
	OrderID     uuid.UUID
	AttemptID   uuid.UUID // the collection whose money goes back
	ExceptionID uuid.UUID // set when a payment exception asked for it
	Amount      money.Amount
	Phone       Phone // who gets it: the payer
	Reason      string
	Status      RefundStatus
	Detail      string // why it waits for a person
	Receipt     string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt time.Time
	Version     int64
}
