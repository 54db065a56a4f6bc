package exchange

import (
	"time"

	"github.com/google/uuid"
)

// BreakerHits is how many refusals of our credentials in a row suspend payouts. A single one stops only its own payout. The
// operator locks an API user that keeps trying with a wrong password.
const BreakerHits = 2

// Breaker stops the payouts of a provider when our credentials are refused. The database opens it, and an officer closes it.
// It also stops all requests while the database is another one than before, until two officers release it.
type Breaker struct {
	Provider string
	Hits     int       // refusals of our credentials in a row; one is kept after closing, until a payout is accepted
	Trial    bool      // closed by an officer, and the operator has accepted no payout since
	Code     string    // of the last refusal
	OpenedAt time.Time // zero: not open
	ClosedAt time.Time // when it was closed last
	ClosedBy uuid.UUID
	Note     string // of the officer who closed it
	// Moved is set while the database is not the one that was released last: put back from a backup, or a standby that took
	// over. ReleasedAt is when it was released last.
	Moved      bool
	ReleasedAt time.Time
}

// BreakerState is which payouts a breaker lets through.
type BreakerState string

// The states of a breaker.
const (
	BreakerClosed BreakerState = "closed" // all payouts
	BreakerTrial  BreakerState = "trial"  // one payout at a time, until the operator accepts one
	BreakerOpen   BreakerState = "open"   // none
	BreakerMoved  BreakerState = "moved"  // none, and no prompts: the database is another one than before
)

// State returns which payouts the breaker lets through.
func (b Breaker) State() BreakerState {
	switch {
	case b.Moved:
		return BreakerMoved
	case !b.OpenedAt.IsZero():
		return BreakerOpen
	case b.Trial:
		return BreakerTrial
	}
	return BreakerClosed
}

// ResumedAt is when payouts were let through again last: flows that parked before may try.
func (b Breaker) ResumedAt() time.Time {
	if b.ReleasedAt.After(b.ClosedAt) {
		return b.ReleasedAt
	}
	return b.ClosedAt
}

// breakerWakeups is how many flows are woken at once when payouts resume; the others follow a few minutes later.
const breakerWakeups = 1000

// Wakeups returns how many of the flows that the breaker parked are woken at a time.
func (b Breaker) Wakeups() int {
	if b.State() == BreakerTrial {
		return 1
	}
	return breakerWakeups
}
