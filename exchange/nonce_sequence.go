package exchange

import (
	"time"

	"github.com/google/uuid"
)

// SenderCount is the number of an address's transactions that a network counts.
type SenderCount struct {
	Latest uint64     // by its newest block
	Final  uint64     // by its newest final block: lower numbers are used for ever
	Block  ChainBlock // that final block
}

// MaxReopeningReason is the most characters of the reason for reopening a sequence.
const MaxReopeningReason = 500

// NonceSequenceReopening is an admin's decision to continue a wallet's sequence although a foreign transaction used its key.
type NonceSequenceReopening struct {
	ID       uuid.UUID
	WalletID uuid.UUID
	// Foreign is the number that closed the sequence; nil where the chain was only found to be ahead of it.
	Foreign    *uint64
	Before     uint64 // the next number until then
	After      uint64 // the next number from then on: the count of the final chain
	Block      ChainBlock
	Reason     string
	ReopenedBy uuid.UUID
	ReopenedAt time.Time
}
