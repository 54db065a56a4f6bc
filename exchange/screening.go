package exchange

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// Verdict is what a screening says of a counterparty.
type Verdict string

// The verdicts. Unknown is no answer: the transfer waits, and nobody is paid.
const (
	VerdictClear   Verdict = "clear"
	VerdictHit     Verdict = "hit"
	VerdictUnknown Verdict = "unknown"
)

// ErrUncleared is the cause of a refusal to pay for crypto of which the last word about who sent it is not that it may be
// taken. Its senders have to be looked at anew.
var ErrUncleared = errors.New("who sent the crypto is not cleared")

// Counterparty is somebody outside of our custody: who is to be paid, by a transfer or by another payment, or who
// sent a deposit that an order sells.
type Counterparty struct {
	TransferID uuid.UUID
	PaymentID  uuid.UUID
	DepositID  uuid.UUID
	Network    Network
	Address    string
	Amount     money.Amount
}

// Reference names the object in the questions to a screener.
func (c Counterparty) Reference() uuid.UUID {
	if c.TransferID != uuid.Nil {
		return c.TransferID
	}
	if c.DepositID != uuid.Nil {
		return c.DepositID
	}
	return c.PaymentID
}

// SigningTerms is what must be known of a payment before it is signed.
type SigningTerms struct {
	Payment  ChainPayment
	Cold     bool // the sending wallet's key never signs here
	External bool // the recipient is not in our custody
	Denied   bool // the recipient stands on the deny list
	Cleared  bool // the last screening of the recipient is clear
}

// Screening is what one screener said of the counterparty of a transfer, of another payment or of a deposit.
type Screening struct {
	ID         uuid.UUID
	TransferID uuid.UUID
	PaymentID  uuid.UUID
	DepositID  uuid.UUID
	Screener   string // "deny_list", or the name of the configured one
	Verdict    Verdict
	Reference  string // the screener's own name for its answer
	At         time.Time
}

// DeniedAddress is a line of the deny list.
type DeniedAddress struct {
	ID        uuid.UUID
	Network   Network
	Address   string
	Reason    string
	AddedBy   uuid.UUID
	AddedAt   time.Time
	RemovedAt time.Time // zero while it counts
}
