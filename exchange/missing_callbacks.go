package exchange

// MissingCallbacks counts requests to the operator whose outcome no callback reported. Every operator loses single
// callbacks, and nothing depends on them. When most are lost, our callback address is probably wrong: orders go on by status
// queries alone, more slowly and unnoticed.
type MissingCallbacks struct {
	Submitted int // requests that the operator accepted
	Missing   int // requests without a callback
}

// MinMissing is the least number of missing callbacks for which their share is significant.
const MinMissing = 5

// Alarming reports whether more than half of the callbacks are missing.
func (c MissingCallbacks) Alarming() bool {
	return c.Missing >= MinMissing && 2*c.Missing > c.Submitted
}
