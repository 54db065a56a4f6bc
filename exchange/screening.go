package exchange

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// Verdict is the result of screening a counterparty.
type Verdict string

// The verdicts. Unknown means no result: the transfer waits, and nothing is paid.
const (
	VerdictClear   Verdict = "clear"
	VerdictHit     Verdict = "hit"
	VerdictUnknown Verdict = "unknown"
)

// ErrUncleared is the cause of a refusal to pay for crypto whose latest screening did not clear its senders. They must be
// screened again.
var ErrUncleared = errors.New("the senders of the crypto are not cleared")

// Counterparty is an address outside of our custody: the recipient of a transfer, a withdrawal or another payment, or the sender of a
// deposit that an order sells.
type Counterparty struct {
	TransferID   uuid.UUID
	WithdrawalID uuid.UUID
	PaymentID    uuid.UUID
	DepositID    uuid.UUID
	Network      Network
	Address      string
	Amount       money.Amount
}

// Reference identifies the object in requests to a screener.
func (c Counterparty) Reference() uuid.UUID {
	for _, id := range []uuid.UUID{c.TransferID, c.WithdrawalID, c.DepositID} {
		if id != uuid.Nil {
			return id
		}
	}
	return c.PaymentID
}

// SigningTerms are the facts that are checked before a payment is signed.
type SigningTerms struct {
	Payment  ChainPayment
	Cold     bool // the service never signs with the sending wallet's key
	External bool // the recipient is not in our custody
	Denied   bool // the recipient is on the deny list
	Cleared  bool // the last screening of the recipient is clear
}

// Screening is one screener's result for the counterparty of a transfer, another payment or a deposit.
type Screening struct {
	ID         uuid.UUID
	TransferID uuid.UUID
	PaymentID  uuid.UUID
	DepositID  uuid.UUID
	Screener   string // "deny_list", or the name of the configured one
	Verdict    Verdict
	Reference  string // the screener's own id of its result
	At         time.Time
}

// DeniedAddress is an entry of the deny list.
type DeniedAddress struct {
	ID        uuid.UUID
	Network   Network
	Address   string
	Reason    string
	AddedBy   uuid.UUID
	AddedAt   time.Time
	RemovedAt time.Time // zero while it is in force
}
