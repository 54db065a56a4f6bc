package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// C2BStatus is whether a payment to our number paid an object.
type C2BStatus string

// A payment is unmatched until two sources prove that it pays an object.
const (
	C2BUnmatched C2BStatus = "unmatched"
	C2BMatched   C2BStatus = "matched"
)

// C2BMachine governs payments to our number.
var C2BMachine = Machine[C2BStatus]{
	Name: "c2b_payment", Initial: C2BUnmatched,
	Transitions: []Transition[C2BStatus]{
		{C2BUnmatched, C2BMatched, ByFlow, "two sources prove that it pays an object, and it is no payment exception"},
	},
	Final: []C2BStatus{C2BMatched},
}

// C2BPayment is a payment to our number. It is stored once by its receipt, whichever channels reported it: a prompt's
// result, the operator's notice, or its statement.
type C2BPayment struct {
	ID        uuid.UUID
	Receipt   string
	Status    C2BStatus
	Amount    money.Amount
	Reference string // what the payer entered, in capital letters; our own if only a prompt's result reported it
	PartyHash string // Phone.Hash of the payer, "" if no channel reported it
	PaidAt    time.Time
	// Object and AttemptID are what it paid; zero while it is unmatched.
	Object    MomoObject
	AttemptID uuid.UUID
	// ExceptionID is set when it matches nothing and an officer must decide.
	ExceptionID uuid.UUID
	NotifiedAt  time.Time // by the operator's notice; zero without one
	ListedAt    time.Time // in the operator's statement; zero until it is found there
	BookedAt    time.Time // for its object; zero while it is unmatched
	NamedFor    uuid.UUID // the OTC deposit for which an officer named it, while another one has to agree; zero for none
	Disputed    bool      // two channels named different amounts or references
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// C2BTaken is the result of recording a payment that a channel reported. Waiting is the attempt that it may pay, whose flow
// must be woken; its id is zero when no attempt has the payment's reference.
type C2BTaken struct {
	Payment C2BPayment
	New     bool
	Waiting PaymentAttempt
}
