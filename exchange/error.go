package exchange

import (
	"errors"
	"fmt"
	"strings"
)

// Code identifies one kind of failure. It is stable and part of the public contract. Callers branch on nothing else.
type Code string

// The catalogue of codes. The API maps each to a status; a test checks docs/contract.md against it.
const (
	CodeInternal            Code = "internal"                 // a bug or a broken dependency; no details for clients
	CodeUnavailable         Code = "unavailable"              // a dependency is down; try again
	CodeMalformed           Code = "malformed"                // the request can't be read at all
	CodeInvalid             Code = "invalid"                  // fields break rules; Fields names them
	CodeUnauthenticated     Code = "unauthenticated"          // no valid token
	CodeInvalidCredentials  Code = "invalid_credentials"      // a wrong or an unknown login, never distinguished
	CodeStepUpRequired      Code = "step_up_required"         // the caller has to prove itself again; see POST /step-up
	CodePINLocked           Code = "pin_locked"               // too many wrong PINs; password login still works
	CodeForbidden           Code = "forbidden"                // the role may not do this at all
	CodeNotFound            Code = "not_found"                // absent, or not visible to the caller
	CodeConflict            Code = "conflict"                 // a unique thing exists already
	CodeStateConflict       Code = "state_conflict"           // the object's state does not allow it
	CodePrecondition        Code = "precondition_failed"      // the object changed since the version in If-Match
	CodeInsufficientFunds   Code = "insufficient_funds"       // an account's available balance is too small
	CodeInsufficientOffer   Code = "insufficient_offer"       // the offer has less left than requested
	CodeLimitReached        Code = "limit_reached"            // a limit on numbers or amounts is reached
	CodeRateChanged         Code = "rate_changed"             // the price differs from the one that the caller expected
	CodeEscrowExhausted     Code = "escrow_exhausted"         // no escrow address is free, and the pool is at its maximum
	CodeSuspended           Code = "payout_suspended"         // the operator refuses our credentials; no payouts
	CodeExpired             Code = "expired"                  // the object has expired
	CodeUnsupported         Code = "unsupported"              // the feature is not available (501)
	CodeIdempotencyReused   Code = "idempotency_key_reused"   // same key, different body
	CodeIdempotencyBusy     Code = "idempotency_in_flight"    // same key, still in progress
	CodeIdempotencyRequired Code = "idempotency_key_required" // a money-moving POST without key
	CodeRateLimited         Code = "rate_limited"
	CodeTooLarge            Code = "too_large"
	CodeMediaType           Code = "unsupported_media_type"
	CodeRange               Code = "range_not_satisfiable" // a range of a file that has no such bytes
	CodeMethodNotAllowed    Code = "method_not_allowed"
)

// FieldError is a part of a request that breaks a rule. Pointer is an RFC 6901 JSON pointer into the body ("/fiat_amount")
// or, for parameters, "query/page_size" or "path/id". Code is the stable name of the rule ("required", "precision",
// "unknown_field", "out_of_range", ...).
type FieldError struct {
	Pointer string `json:"pointer"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error is a failure with a code. Message is for users and may reach clients. Cause is for logs and never reaches them.
type Error struct {
	Code    Code
	Message string
	Fields  []FieldError
	Cause   error
}

// Error joins code, message and cause for logs.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Code, e.Message)
	for _, f := range e.Fields {
		fmt.Fprintf(&b, "; %s %s", f.Pointer, f.Message)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an Error with a message for users.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error with a cause that only appears in logs.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Cause: cause}
}

// Invalid makes a CodeInvalid error from broken rules. It returns nil when there are none, so a validator can end with it.
func Invalid(fields ...FieldError) error {
	if len(fields) == 0 {
		return nil
	}
	return &Error{Code: CodeInvalid, Message: "The request breaks one or more rules.", Fields: fields}
}

// CodeOf finds the code in an error chain: "" for nil, CodeInternal for an error of unknown origin.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// MessageOf returns the text that a client may read; for an error of unknown origin that is a general one.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Code != CodeInternal {
		return e.Message
	}
	return "Something went wrong on our side."
}

// ChangedMeanwhile refuses a change because the object's stored version is not the one in If-Match.
func ChangedMeanwhile() *Error {
	return Errorf(CodePrecondition, "The object has changed since the version in If-Match. Read it again.")
}
