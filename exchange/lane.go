package exchange

import (
	"time"

	"github.com/google/uuid"
)

// SenderCount is how many transactions of an address a network counts.
type SenderCount struct {
	Latest uint64     // by its newest block
	Final  uint64     // by its newest final block: the numbers below are used for ever
	Block  ChainBlock // that final block
}

// MaxLaneReason bounds the words with which a lane is opened again, in characters.
const MaxLaneReason = 500

// LaneReopening is a person's decision that a wallet's sequence goes on though somebody else used its key.
type LaneReopening struct {
	ID       uuid.UUID
	WalletID uuid.UUID
	// Foreign is the number that had closed the lane; nil where the chain was only found to be ahead of it.
	Foreign    *uint64
	Before     uint64 // the number that was next
	After      uint64 // the one that is next now: what the final chain counts
	Block      ChainBlock
	Reason     string
	ReopenedBy uuid.UUID
	ReopenedAt time.Time
}
