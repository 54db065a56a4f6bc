package pg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/lib/pq"

	"kivuko/exchange"
)

// ErrChangedMeanwhile means that an object changed after it was read.
var ErrChangedMeanwhile = exchange.Errorf(exchange.CodeStateConflict, "The object was changed by another request meanwhile.")

// The SQLSTATE codes that are distinguished, from PostgreSQL's appendix A.
const (
	UniqueViolation      = "23505"
	CheckViolation       = "23514"
	ForeignKeyViolation  = "23503"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	queryCanceled        = "57014"
	lockNotAvailable     = "55P03"
)

// Translate turns a driver error into an *exchange.Error; what names the object for users. Our own errors are returned
// unchanged. CodeUnavailable means that the outcome may be unknown.
func Translate(err error, what string) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*exchange.Error](err); ok {
		return own
	}
	if errors.Is(err, sql.ErrNoRows) {
		return exchange.Errorf(exchange.CodeNotFound, "There is no such %s.", what)
	}
	if pe, ok := errors.AsType[*pq.Error](err); ok {
		return translateServer(pe, what)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The request was cancelled or timed out.")
	}
	if connectionLost(err) {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The database can't be reached.")
	}
	return exchange.Wrap(exchange.CodeInternal, err, "The %s could not be stored or read.", what)
}

func translateServer(pe *pq.Error, what string) error {
	switch pe.Code {
	case UniqueViolation:
		return exchange.Wrap(exchange.CodeConflict, pe, "Such a %s already exists.", what)
	case ForeignKeyViolation:
		return exchange.Wrap(exchange.CodeConflict, pe, "The %s refers to something that does not exist, or is still in use.", what)
	case serializationFailure, deadlockDetected, queryCanceled, lockNotAvailable:
		return exchange.Wrap(exchange.CodeUnavailable, pe, "The database is too busy. Try again.")
	}
	switch pe.Code.Class() {
	case "08", "53", "57", "58": // connection, resources, operator intervention, system
		return exchange.Wrap(exchange.CodeUnavailable, pe, "The database can't be reached.")
	}
	return exchange.Wrap(exchange.CodeInternal, pe, "The %s could not be stored or read.", what)
}

// connectionLost reports whether an error comes from the connection and not from a query.
func connectionLost(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, net.ErrClosed) {
		return true
	}
	text := err.Error()
	return strings.Contains(text, "EOF") || strings.Contains(text, "connection reset") || strings.Contains(text, "sql: database is closed")
}

// ErrLostRace is joined to the refusal of what was decided before a concurrent transaction ended: it may be decided anew.
var ErrLostRace = errors.New("lost a race")

// LostRace reports whether a transaction failed only because of a concurrent one and may be repeated.
func LostRace(err error) bool {
	pe, ok := errors.AsType[*pq.Error](err)
	return errors.Is(err, ErrLostRace) || ok && (pe.Code == serializationFailure || pe.Code == deadlockDetected)
}

// Fatal reports whether a transaction can't go on after the error, even behind a savepoint.
func Fatal(err error) bool {
	return err != nil && (LostRace(err) || connectionLost(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// Broke reports whether the error is a violation of the named constraint.
func Broke(err error, constraint string) bool {
	pe, ok := errors.AsType[*pq.Error](err)
	return ok && pe.Constraint == constraint
}

// pause waits longer with each try, with jitter, so that two losers do not collide again.
func pause(ctx context.Context, try int) error {
	const unit = 5 * time.Millisecond
	wait := time.Duration(rand.Int64N(int64(unit << min(try, 6)))) //nolint:gosec // G404: jitter needs no secrecy
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}
