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
		{RefundPending, RefundProcessing, ByFlow, "the payout is written and about to be submitted, the payment in crypto is approved, or the money is reserved at a bank"},
		{RefundPending, RefundNeedsReview, ByFlow, "the operator reports another payer or a late payout to the order's payee, or an officer refused it"},
		{RefundPending, RefundFailed, ByOperator, "two officers give a refund by bank up"},
		{RefundProcessing, RefundCompleted, ByFlow, "the payout is proven, the payment in crypto is final, or enough officers name the bank's reference"},
		{RefundProcessing, RefundFailed, ByFlow, "the operator definitely refused, or nothing can be sent to the address"},
		{RefundProcessing, RefundFailed, ByOperator, "two officers say that the bank did not pay it"},
		{RefundFailed, RefundNeedsReview, ByFlow, "an officer must decide"},
		{RefundNeedsReview, RefundProcessing, ByOperator, "tried again as a new payout"},
		{RefundNeedsReview, RefundCompleted, ByOperator, "paid by other means, with a reference"},
	},
	Final: []RefundStatus{RefundCompleted},
}

// RefundPayerDiffers is the detail of a refund that waits for an officer because the operator's notice or statement has
// another payer than the prompted phone.
const RefundPayerDiffers = "payer_differs"

// Refund returns money of one collection, or of one deposit on a chain. The database ensures that a collection's refunds
// never exceed its amount, and that a deposit is refunded once.
type Refund struct {
	ID          uuid.UUID
	Rail        RefundRail
	OrderID     uuid.UUID // zero for crypto that belongs to no order
	AttemptID   uuid.UUID // the collection whose money is returned; zero for crypto
	ExceptionID uuid.UUID // set when it returns the money of a payment exception
	Amount      money.Amount
	Phone       Phone // the payee, who paid the collection; zero for crypto
	Reason      string
	Status      RefundStatus
	Detail      string // why it waits for an officer
	Receipt     string // the operator's, or the id of the transaction
	CreatedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt time.Time
	Version     int64
	RequestedBy uuid.UUID // the user who asked for it; zero when it was opened by rule
	Claimed     bool      // a source reports that a refused payout by mobile money was made, and it is not denied

	// For crypto only.
	DepositID   uuid.UUID // the deposit that brought it; zero when our own payment did
	WalletID    uuid.UUID // where the crypto is
	Network     Network
	Address     string // where it is sent to; empty until it is given
	HoldID      uuid.UUID
	Value       money.Amount // its value in shillings when the refund was opened
	Digest      string       // of Intent, which officers approve
	AddressedBy uuid.UUID    // the user who gave the address, if it is not the order's

	// For a refund by bank only.
	Payee      BankPayee
	BankHoldID uuid.UUID // of its money at a bank of the house, once it is on its way
	BankID     uuid.UUID // that account of the house
	BegunAt    time.Time // when its money was reserved
	LineID     uuid.UUID // of the statement that shows the payment
}

// BankPayee is the account that a refund by bank goes to.
type BankPayee struct {
	BankName      string
	BankCode      string // of Kenya's clearing, or empty
	Branch        string
	SwiftCode     string // a BIC, or empty
	AccountName   string
	AccountNumber string // in the form of BankReference
	Reason        string // why it is another account than the money is known to come from
}

// BankRefundRequest is an officer's request to refund a payment exception by bank.
type BankRefundRequest struct {
	ID          uuid.UUID // of the request
	ExceptionID uuid.UUID
	Payee       BankPayee
	Note        string
}
