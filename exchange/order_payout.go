package exchange

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// PayoutRail says how the payee of an order gets the shillings.
type PayoutRail string

// The rails. By mobile money the flow pays and proves it; by bank a person pays and another may have to agree.
const (
	PayoutByMomo PayoutRail = "momo"
	PayoutByBank PayoutRail = "bank"
)

// PayoutStatus is the state of what an order pays out.
type PayoutStatus string

// The states of an order's payout.
const (
	PayoutPending    PayoutStatus = "pending"
	PayoutProcessing PayoutStatus = "processing"
	PayoutCompleted  PayoutStatus = "completed"
	PayoutRefused    PayoutStatus = "refused"
	PayoutCancelled  PayoutStatus = "cancelled"
)

// OrderPayoutMachine governs what an order that sells crypto pays out. Success may follow a definite refusal, because
// operators report late successes after failures; nothing follows success.
var OrderPayoutMachine = Machine[PayoutStatus]{
	Name: "order_payout", Initial: PayoutPending,
	Transitions: []Transition[PayoutStatus]{
		{PayoutPending, PayoutProcessing, ByFlow, "an attempt is written and about to be submitted, or the payment is on the desk of the treasury"},
		{PayoutProcessing, PayoutCompleted, ByFlow, "two witnesses report success, or enough officers name the bank's reference"},
		{PayoutProcessing, PayoutRefused, ByFlow, "definitely not paid"},
		{PayoutRefused, PayoutProcessing, ByFlow, "tried again as a new attempt"},
		{PayoutRefused, PayoutCompleted, ByFlow, "a late success is proven"},
		{PayoutPending, PayoutCancelled, ByFlow, "a refund of the crypto is opened before anything was paid"},
		{PayoutRefused, PayoutCancelled, ByFlow, "a refund of the crypto is opened"},
		{PayoutCancelled, PayoutCompleted, ByOperator, "it was made after all, and the payee keeps it instead of the refund"},
	},
	Final: []PayoutStatus{PayoutCompleted},
}

// OrderPayout is what an order that sells crypto pays out: once, whole, in shillings.
type OrderPayout struct {
	OrderID uuid.UUID
	Rail    PayoutRail
	Amount  money.Amount
	Phone   Phone // who gets it by mobile money; by bank the customer, whom the bank does not ask
	Status  PayoutStatus
	// PaidBy is the attempt that paid it, zero by bank and before.
	PaidBy  uuid.UUID
	Receipt string // the operator's receipt, or the bank's reference
	// RefusedCode is the code of the last definite refusal, or "bank".
	RefusedCode string
	// Doubted says that nobody knew, at some time, whether an attempt had paid. It stays: a refund of the order then
	// needs a second person for ever.
	Doubted bool
	// Claimed says that a payout which was refused is said to have been made, and nobody has denied it yet.
	Claimed     bool
	HoldID      uuid.UUID // what a bank payout reserves of the house's money at its bank
	CreatedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt time.Time
	Version     int64
}

// BankConfirmation is an officer's word that the bank has paid an order out.
type BankConfirmation struct {
	ID        uuid.UUID // of the request
	OrderID   uuid.UUID
	OfficerID uuid.UUID
	Reference string    // the bank's, as BankReference writes it
	PaidOn    time.Time // the day of the payment, at midnight UTC
	Amount    money.Amount
	Note      string
	CreatedAt time.Time
}

// Limits of what officers write about a bank payout.
const (
	MaxBankReference = 64
	MaxBankNote      = 500
)

// BankReference is a bank's reference in the one form in which it is kept and compared: banks print the same one in
// capitals and in small letters, with and without spaces.
func BankReference(text string) string {
	return strings.ToUpper(strings.ReplaceAll(text, " ", ""))
}

// RefusedByBank is the RefusedCode of a bank payout that can't be made.
const RefusedByBank = "bank"

// BankPayoutState is where a bank payout stands, for lists.
type BankPayoutState string

// The states of a bank payout in lists.
const (
	BankWaiting BankPayoutState = "waiting" // nobody has confirmed it
	BankSecond  BankPayoutState = "second"  // one officer has, and another has to
	BankDone    BankPayoutState = "done"
	BankRefused BankPayoutState = "refused"
)

// BankPayout is what the treasury has to pay by bank, or has paid.
type BankPayout struct {
	OrderPayout
	Order         Order
	Confirmations []BankConfirmation // those that count, the oldest first
	SecondNeeded  bool               // its amount asks for two officers
}

// State is where the payout stands.
func (b BankPayout) State() BankPayoutState {
	switch b.Status {
	case PayoutCompleted:
		return BankDone
	case PayoutRefused, PayoutCancelled:
		return BankRefused
	case PayoutPending, PayoutProcessing:
	}
	if len(b.Confirmations) > 0 {
		return BankSecond
	}
	return BankWaiting
}
