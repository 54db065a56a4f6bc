package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"kivuko/chain"
	"kivuko/exchange"
)

// TypePending is the error type of a poll without a result yet. It is not a failure.
const TypePending = "pending"

// TypeInternal is the error type of an unexpected failure.
const TypeInternal = string(exchange.CodeInternal)

// maxSurprises is how often an unexpected failure is retried before its flow parks.
const maxSurprises = 8

// rateLimitPause is the wait after a dependency limited our rate.
const rateLimitPause = 30 * time.Second

// retryable are the codes of temporary failures: they are retried for as long as the options of the call allow.
var retryable = []exchange.Code{exchange.CodeUnavailable, exchange.CodeRateLimited}

// Failure converts an error to a Temporal error; nil stays nil. The type is the exchange code or the chain reason, and the
// details of a CodeInvalid error are its fields. The code alone decides whether it is retried. A business refusal is final.
// An unexpected failure is final after a few retries, so that a bug parks its flow instead of running for ever.
func Failure(ctx context.Context, err error) error {
	if err == nil || temporal.IsApplicationError(err) || temporal.IsCanceledError(err) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return applicationError("A call took too long.", string(exchange.CodeUnavailable), false, 0, nil, err)
	}
	if e, ok := errors.AsType[*exchange.Error](err); ok {
		return exchangeFailure(ctx, e)
	}
	if e, ok := errors.AsType[*chain.Error](err); ok {
		return chainFailure(ctx, e)
	}
	return surprise(ctx, exchange.MessageOf(err), err)
}

func exchangeFailure(ctx context.Context, e *exchange.Error) error {
	switch {
	case e.Code == exchange.CodeInternal:
		return surprise(ctx, e.Message, e)
	case e.Code == exchange.CodeRateLimited:
		return applicationError(e.Message, string(e.Code), false, rateLimitPause, nil, e.Cause)
	case slices.Contains(retryable, e.Code):
		return applicationError(e.Message, string(e.Code), false, 0, nil, e.Cause)
	}
	return applicationError(e.Message, string(e.Code), true, 0, e.Fields, e.Cause)
}

func chainFailure(ctx context.Context, e *chain.Error) error {
	switch e.Reason {
	case chain.ReasonUnavailable:
		return applicationError(e.Detail, string(e.Reason), false, 0, nil, e.Cause)
	case chain.ReasonProtocol:
		return surprise(ctx, e.Detail, e)
	case chain.ReasonAddress, chain.ReasonUnsupported, chain.ReasonFunds, chain.ReasonGas, chain.ReasonBlocked, chain.ReasonPaused, chain.ReasonReverts, chain.ReasonFeeTooHigh, chain.ReasonBudget, chain.ReasonForeign: // a retry does not help
	}
	return applicationError(e.Detail, string(e.Reason), true, 0, nil, e.Cause)
}

func surprise(ctx context.Context, message string, cause error) error {
	final := activity.IsActivity(ctx) && activity.GetInfo(ctx).Attempt >= maxSurprises
	return applicationError(message, TypeInternal, final, 0, nil, cause)
}

// NotYet returns the error of a poll that must be repeated after a pause. It raises no alarm.
func NotYet(what string, pause time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(what, TypePending, temporal.ApplicationErrorOptions{
		NextRetryDelay: pause, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

func applicationError(message, kind string, final bool, pause time.Duration, fields []exchange.FieldError, cause error) error {
	o := temporal.ApplicationErrorOptions{NonRetryable: final, NextRetryDelay: pause, Cause: cause}
	if len(fields) > 0 {
		o.Details = []any{fields}
	}
	return temporal.NewApplicationErrorWithOptions(message, kind, o)
}

// AsExchangeError converts an error that came through Temporal back to the exchange.Error that it was. An error whose type is
// no code of the catalogue becomes CodeInternal without details for clients; a timeout becomes CodeUnavailable. Nil stays
// nil.
func AsExchangeError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*exchange.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return fromApplication(e, err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || temporal.IsTimeoutError(err) {
		return exchange.Wrap(exchange.CodeUnavailable, err, "There was no answer in time. Try again with the same Idempotency-Key.")
	}
	return exchange.Wrap(exchange.CodeInternal, err, "a flow failed")
}

func fromApplication(e *temporal.ApplicationError, err error) error {
	code := exchange.Code(e.Type())
	if !catalogued(code) {
		return exchange.Wrap(exchange.CodeInternal, err, "a flow failed")
	}
	out := &exchange.Error{Code: code, Message: e.Message(), Cause: e.Unwrap()}
	if e.HasDetails() {
		// Details of another form are left out; the code and the message are enough.
		_ = e.Details(&out.Fields)
	}
	return out
}

func catalogued(c exchange.Code) bool {
	switch c {
	case exchange.CodeUnavailable, exchange.CodeMalformed, exchange.CodeInvalid, exchange.CodeForbidden, exchange.CodeNotFound,
		exchange.CodeConflict, exchange.CodeStateConflict, exchange.CodeInsufficientFunds, exchange.CodeInsufficientOffer,
		exchange.CodeLimitReached, exchange.CodeRateChanged, exchange.CodeEscrowExhausted, exchange.CodeSuspended, exchange.CodeExpired, exchange.CodeUnsupported, exchange.CodeRateLimited:
		return true
	case exchange.CodeInternal, exchange.CodeUnauthenticated, exchange.CodeInvalidCredentials, exchange.CodeStepUpRequired, exchange.CodePINLocked, exchange.CodeIdempotencyReused, exchange.CodeIdempotencyBusy, exchange.CodeIdempotencyRequired, exchange.CodeTooLarge, exchange.CodeMediaType, exchange.CodeMethodNotAllowed, exchange.CodePrecondition, exchange.CodeRange: // flows never return these to a caller
	}
	return false
}
