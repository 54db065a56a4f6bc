package exchange

import (
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

// Counterparty is who is to be paid outside of our custody.
type Counterparty struct {
	TransferID uuid.UUID
	Network    Network
	Address    string
	Amount     money.Amount
}

// Screening is what one screener said of a transfer's counterparty.
type Screening struct {
	ID         uuid.UUID
	TransferID uuid.UUID
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
