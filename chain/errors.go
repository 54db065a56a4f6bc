package chain

import (
	"errors"
	"fmt"

	"kivuko/exchange/money"
)

// Reason classifies why a driver could not do what was requested.
type Reason string

// The reasons. Only ReasonUnavailable is worth trying again without a change.
const (
	ReasonAddress     Reason = "invalid_address"
	ReasonUnsupported Reason = "unsupported_asset"
	ReasonFunds       Reason = "insufficient_funds" // of the asset that is sent
	ReasonGas         Reason = "insufficient_gas"   // of the native coin that pays the fee
	ReasonBlocked     Reason = "blocked"            // sender or recipient is on the token's block list
	ReasonPaused      Reason = "token_paused"
	ReasonReverts     Reason = "would_revert" // the simulation of the real transfer fails
	ReasonFeeTooHigh  Reason = "fee_too_high"
	ReasonBudget      Reason = "fee_budget"    // the house's fee budget of the day is used up
	ReasonForeign     Reason = "foreign_nonce" // a transaction that is not ours used the wallet's key, or other keys control the account
	ReasonUnavailable Reason = "unavailable"   // the node can't be reached or is behind
	ReasonProtocol    Reason = "protocol"      // the node's response violates its protocol
)

// Error is a failure that a driver recognises. Detail never contains keys or signed bytes.
type Error struct {
	Reason Reason
	Detail string
	Cause  error
	// Missing is how much more the sender needs, for ReasonFunds and ReasonGas, if known.
	Missing money.Amount
	// Cost is the most that the transaction could cost, in the native coin, for ReasonGas, if known.
	Cost money.Amount
}

// Error joins reason, detail and cause.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("chain: %s: %s: %v", e.Reason, e.Detail, e.Cause)
	}
	return fmt.Sprintf("chain: %s: %s", e.Reason, e.Detail)
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an Error without a cause.
func Errorf(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error around a cause.
func Wrap(r Reason, cause error, format string, args ...any) *Error {
	return &Error{Reason: r, Detail: fmt.Sprintf(format, args...), Cause: cause}
}

// DetailOf is the detail of an error that a driver recognised, and the text of any other.
func DetailOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Detail
	}
	return err.Error()
}

// ReasonOf finds the reason in an error chain: "" for nil, ReasonProtocol for an unknown error.
func ReasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ReasonProtocol
}
