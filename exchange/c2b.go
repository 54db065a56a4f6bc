package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// C2BStatus says whether a payment to our number has paid something.
type C2BStatus string

// A payment is unmatched until two witnesses have proven it for what waits for it.
const (
	C2BUnmatched C2BStatus = "unmatched"
	C2BMatched   C2BStatus = "matched"
)

// C2BPayment is a payment to our number, once by its receipt, whichever channels told of it: the result of a
// prompt, the operator's notice, its statement.
type C2BPayment struct {
	ID        uuid.UUID
	Receipt   string
	Status    C2BStatus
	Amount    money.Amount
	Reference string // what the payer named, in capital letters; ours where the result of a prompt told of it alone
	PartyHash string // Phone.Hash of the payer, "" where no channel told
	PaidAt    time.Time
	// OrderID and AttemptID are what it paid, zero while it is unmatched.
	OrderID   uuid.UUID
	AttemptID uuid.UUID
	// ExceptionID is set when nothing waits for it and a person has to decide.
	ExceptionID uuid.UUID
	ToldAt      time.Time // by the operator's notice; zero where none came
	ListedAt    time.Time // in the operator's statement; zero where it was not found there yet
	BookedAt    time.Time // for its order; zero while it is unmatched
	Disputed    bool      // two channels named different amounts or references
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// C2BTaken is what became of a payment that a channel told of. Waiting is the attempt that it may pay, whose flow
// has to be woken; its id is zero when nothing of ours waits under the payment's reference.
type C2BTaken struct {
	Payment C2BPayment
	New     bool
	Waiting PaymentAttempt
}
