package exchange

// SenderCount is the number of an address's transactions that a network counts.
type SenderCount struct {
	Latest uint64     // by its newest block
	Final  uint64     // by its newest final block: lower numbers are used for ever
	Block  ChainBlock // that final block
}

// MaxReopeningReason is the most characters of the reason for reopening a sequence.
const MaxReopeningReason = 500
