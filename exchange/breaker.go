package exchange

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// BreakerHits is after how many refusals of our own credential in a row payouts are suspended. One of them stops its own
// payout alone. The operator locks an API user that goes on trying with a wrong password.
const BreakerHits = 2

// CredentialCodes are the results with which the operator turns our own credential down, or our right to pay out:
// whatever is sent next is turned down too. The database counts them (momo_credential_codes).
//
// Sources: the operator's portal, result codes of B2C and generic codes, and production notes for TP40153; the rest are
// codes of its gateway, of which token_refused is our own word for a consumer key that gets no access token.
func CredentialCodes() []string {
	return []string{
		"11", "18", "20", "21", "22", "2001", "2006", "2028", "8006", "TP40153",
		"token_refused", "401", "400.003.01", "401.002.01", "401.003.01", "403.002.1001", "404.001.03", "404.001.04",
	}
}

// CredentialCode tells whether a result code of a payout is one of CredentialCodes.
func CredentialCode(code string) bool { return slices.Contains(CredentialCodes(), code) }

// Breaker stops the payouts of a provider when our own credential is turned down. The database opens it, and a person
// closes it.
type Breaker struct {
	Provider string
	Hits     int       // refusals of our credential in a row; one is left after closing, until a payout is taken
	Trial    bool      // closed by an officer, and the operator has taken no payout since
	Code     string    // of the last refusal
	OpenedAt time.Time // zero: not open
	ClosedAt time.Time // when it was closed last
	ClosedBy uuid.UUID
	Note     string // of who closed it
}

// BreakerState says what a breaker lets through.
type BreakerState string

// The states of a breaker.
const (
	BreakerClosed BreakerState = "closed" // payouts go
	BreakerTrial  BreakerState = "trial"  // one payout at a time, whatever else is open, until the operator takes one
	BreakerOpen   BreakerState = "open"   // none
)

// State is what the breaker lets through.
func (b Breaker) State() BreakerState {
	switch {
	case !b.OpenedAt.IsZero():
		return BreakerOpen
	case b.Trial:
		return BreakerTrial
	}
	return BreakerClosed
}

// breakerWakeups is how many flows are told at once that payouts go again; the others are told a few minutes later.
const breakerWakeups = 1000

// Wakeups is how many of the flows that the breaker parked are told at a time to try again.
func (b Breaker) Wakeups() int {
	if b.State() == BreakerTrial {
		return 1
	}
	return breakerWakeups
}
