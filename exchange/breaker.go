package exchange

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// BreakerHits is how many refusals of our credentials in a row suspend payouts. A single one stops only its own payout. The
// operator locks an API user that keeps trying with a wrong password.
const BreakerHits = 2

// CredentialCodes are the result codes with which the operator refuses our credentials or our right to pay out: every later
// request would be refused too. The database counts them (momo_credential_codes).
//
// Sources: the operator's portal (result codes of B2C, generic codes) and production notes for TP40153. The rest are codes
// of its gateway. token_refused is our own code for a consumer key that gets no access token.
func CredentialCodes() []string {
	return []string{
		"11", "18", "20", "21", "22", "2001", "2006", "2028", "8006", "TP40153",
		"token_refused", "401", "400.003.01", "401.002.01", "401.003.01", "403.002.1001", "404.001.03", "404.001.04",
	}
}

// CredentialCode reports whether a result code of a payout is one of CredentialCodes.
func CredentialCode(code string) bool { return slices.Contains(CredentialCodes(), code) }

// Breaker stops the payouts of a provider when our credentials are refused. The database opens it, and an officer closes it.
type Breaker struct {
	Provider string
	Hits     int       // refusals of our credentials in a row; one is kept after closing, until a payout is accepted
	Trial    bool      // closed by an officer, and the operator has accepted no payout since
	Code     string    // of the last refusal
	OpenedAt time.Time // zero: not open
	ClosedAt time.Time // when it was closed last
	ClosedBy uuid.UUID
	Note     string // of the officer who closed it
}

// BreakerState is which payouts a breaker lets through.
type BreakerState string

// The states of a breaker.
const (
	BreakerClosed BreakerState = "closed" // all payouts
	BreakerTrial  BreakerState = "trial"  // one payout at a time, until the operator accepts one
	BreakerOpen   BreakerState = "open"   // none
)

// State returns which payouts the breaker lets through.
func (b Breaker) State() BreakerState {
	switch {
	case !b.OpenedAt.IsZero():
		return BreakerOpen
	case b.Trial:
		return BreakerTrial
	}
	return BreakerClosed
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
