package exchange

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// PayoutRail is the way in which the payee of an order is paid.
type PayoutRail string

// The rails. By mobile money the flow pays and proves it. By bank an officer pays, and a second officer may have to
// confirm.
const (
	PayoutByMomo PayoutRail = "momo"
	PayoutByBank PayoutRail = "bank"
)

// PayoutStatus is the state of an order's payout.
type PayoutStatus string

// The states of an order's payout.
const (
	PayoutPending    PayoutStatus = "pending"
	PayoutProcessing PayoutStatus = "processing"
	PayoutCompleted  PayoutStatus = "completed"
	PayoutRefused    PayoutStatus = "refused"
	PayoutCancelled  PayoutStatus = "cancelled"
)

// OrderPayoutMachine governs the payout of an order that sells crypto. Success may follow a definite refusal, because
// operators report late successes after failures; nothing follows success.
var OrderPayoutMachine = Machine[PayoutStatus]{
	Name: "order_payout", Initial: PayoutPending,
	Transitions: []Transition[PayoutStatus]{
		{PayoutPending, PayoutProcessing, ByFlow, "an attempt is written and about to be submitted, or the payment is in the treasury's queue"},
		{PayoutProcessing, PayoutCompleted, ByFlow, "two sources report success, or enough officers name the bank's reference"},
		{PayoutProcessing, PayoutRefused, ByFlow, "definitely not paid, or two officers say that the bank did not pay"},
		{PayoutRefused, PayoutProcessing, ByFlow, "tried again as a new attempt"},
		{PayoutRefused, PayoutCompleted, ByFlow, "a late success is proven"},
		{PayoutPending, PayoutCancelled, ByFlow, "a refund of the crypto is opened before any payout"},
		{PayoutRefused, PayoutCancelled, ByFlow, "a refund of the crypto is opened"},
		{PayoutCancelled, PayoutCompleted, ByOperator, "the payout proved to have been made, and replaces the refund"},
	},
	Final: []PayoutStatus{PayoutCompleted},
}

// OrderPayout is the payout of an order that sells crypto: one payment of the whole amount, in shillings.
type OrderPayout struct {
	OrderID uuid.UUID
	Rail    PayoutRail
	Amount  money.Amount
	Phone   Phone // who is paid by mobile money; for a bank payout the customer's own number, which the bank does not use
	Status  PayoutStatus
	// PaidBy is the attempt that paid it; zero for a bank payout and before the payment.
	PaidBy  uuid.UUID
	Receipt string // the operator's receipt, or the bank's reference
	// Reference is the order's, which the payment carries.
	Reference string
	// RefusedCode is the code of the last definite refusal, or "bank".
	RefusedCode string
	// Doubted is set for good once an attempt had an unknown outcome. A refund of the order then needs a second
	// officer.
	Doubted bool
	// Claimed is set while a refused payout is reported as paid and the report is not dismissed.
	Claimed     bool
	HoldID      uuid.UUID // what a bank payout reserves of the house's money at its bank
	CreatedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt time.Time
	Version     int64
}

// BankConfirmation is an officer's attestation that the bank has paid an order, a withdrawal or a refund.
type BankConfirmation struct {
	ID           uuid.UUID // of the request
	OrderID      uuid.UUID // zero for another object
	WithdrawalID uuid.UUID // zero for another object
	RefundID     uuid.UUID // zero for another object
	OfficerID    uuid.UUID
	Reference    string    // the bank's reference, in the form of BankReference
	PaidOn       time.Time // the day of the payment, at midnight UTC
	Amount       money.Amount
	Note         string
	CreatedAt    time.Time
}

// Limits of the texts that officers enter about a bank payout.
const (
	MaxBankReference = 64
	MaxBankNote      = 500
)

// BankReference returns the form of a bank's reference that is stored and compared: its letters and digits, in
// capitals. Banks print the same one in small letters too, and with spaces, hyphens and slashes between its parts.
func BankReference(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case ('A' <= r && r <= 'Z') || ('0' <= r && r <= '9'):
			return r
		}
		return -1
	}, text)
}

// RefusedByBank is the RefusedCode of a bank payout that the bank can't make.
const RefusedByBank = "bank"

// BankPayout is a payment that the treasury must make, or has made, by bank.
type BankPayout struct {
	OrderPayout
	Order         Order
	Confirmations []BankConfirmation // those that count, the oldest first
	SecondNeeded  bool               // its amount needs two officers
	BankID        uuid.UUID          // the account of the house that it is paid from; zero until its money is reserved
}
