package exchange

import (
	"errors"
	"fmt"
	"strings"
)

// Code names one kind of failure. It is stable, part of the public contract, and the only thing
// that callers may branch on.
type Code string

// The catalogue of codes. The API maps each to a status; docs/contract.md is checked against it.
const (
	CodeInternal            Code = "internal"                 // a bug or a broken dependency; says nothing to clients
	CodeUnavailable         Code = "unavailable"              // a dependency is down; try again
	CodeMalformed           Code = "malformed"                // the request can't be read at all
	CodeInvalid             Code = "invalid"                  // fields break rules; Fields names them
	CodeUnauthenticated     Code = "unauthenticated"          // no valid token
	CodeInvalidCredentials  Code = "invalid_credentials"      // wrong or unknown login, told apart nowhere
	CodePINLocked           Code = "pin_locked"               // too many wrong PINs; password login still works
	CodeForbidden           Code = "forbidden"                // the role may not do this at all
	CodeNotFound            Code = "not_found"                // absent, or not the caller's to see
	CodeConflict            Code = "conflict"                 // a unique thing exists already
	CodeStateConflict       Code = "state_conflict"           // the object's state does not allow it
	CodePrecondition        Code = "precondition_failed"      // the object changed since the version in If-Match
	CodeInsufficientFunds   Code = "insufficient_funds"       // an account's available balance is too small
	CodeInsufficientOffer   Code = "insufficient_offer"       // the offer has less left than asked for
	CodeLimitReached        Code = "limit_reached"            // as many of them as the caller may have at a time
	CodeRateChanged         Code = "rate_changed"             // the price is not the one that the caller expected
	CodeEscrowDry           Code = "escrow_exhausted"         // no escrow address is free, and the pool is as large as it may be
	CodeSuspended           Code = "payout_suspended"         // the operator refuses our credential, and nothing is paid out until a person has looked
	CodeExpired             Code = "expired"                  // the object's time is over
	CodeUnsupported         Code = "unsupported"              // a named feature is not offered (501)
	CodeIdempotencyReused   Code = "idempotency_key_reused"   // same key, other body
	CodeIdempotencyBusy     Code = "idempotency_in_flight"    // same key, still running
	CodeIdempotencyRequired Code = "idempotency_key_required" // a money-moving POST without key
	CodeRateLimited         Code = "rate_limited"
	CodeTooLarge            Code = "too_large"
	CodeMediaType           Code = "unsupported_media_type"
	CodeMethodNotAllowed    Code = "method_not_allowed"
)

// FieldError says which part of a request breaks which rule. Pointer is an RFC 6901 JSON pointer
// into the body ("/fiat_amount") or, for parameters, "query/page_size" or "path/id". Code is the
// stable name of the rule ("required", "precision", "unknown_field", "out_of_range", ...).
type FieldError struct {
	Pointer string `json:"pointer"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error is a failure that Kivuko understands. Message is for people and may reach clients; Cause is
// for logs and never does.
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

// Errorf makes an Error with a message for people.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error around a cause that only logs will see.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Cause: cause}
}

// Invalid makes a CodeInvalid error from broken rules; it returns nil when there are none, so that
// a validator can end with it.
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

// MessageOf is the text that a client may read; an error of unknown origin says nothing.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Code != CodeInternal {
		return e.Message
	}
	return "Something went wrong on our side."
}

// ChangedMeanwhile refuses a change to another version of an object than the one that is stored.
func ChangedMeanwhile() *Error {
	return Errorf(CodePrecondition, "The object is not any more as the version in If-Match. Read it again.")
}
