package store

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

// errChangedMeanwhile says that an object was not in the state in which it was read.
var errChangedMeanwhile = exchange.Errorf(exchange.CodeStateConflict, "The object was changed by somebody else meanwhile.")

// The SQLSTATE codes that the store tells apart, from PostgreSQL's appendix A.
const (
	pgUniqueViolation      = "23505"
	pgCheckViolation       = "23514"
	pgForeignKeyViolation  = "23503"
	pgSerializationFailure = "40001"
	pgDeadlockDetected     = "40P01"
	pgQueryCanceled        = "57014"
	pgLockNotAvailable     = "55P03"
	// pgIllegalTransition is raised by the trigger that holds the state machines. The other codes of our
	// triggers, KV002 (a row that never changes) and KV003 (an entry that is off), mean a bug.
	pgIllegalTransition = "KV001"
	// pgForeignGas is raised when a fee could be paid with coins of a wallet's owner.
	pgForeignGas = "KV005"
	// pgTwoPersons is raised when a control would be loosened without a second person, or by one who may not any more.
	pgTwoPersons = "KV006"
	// pgSuspended is raised when a payout would begin while our credential with the operator is in doubt.
	pgSuspended = "KV055"
)

// translate turns what the driver says into an *exchange.Error; what names the object for people.
// Errors of ours pass through.
func translate(err error, what string) error {
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
		return translatePostgres(pe, what)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The request ended before the answer was there.")
	}
	if connectionTrouble(err) {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The database can't be reached.")
	}
	return exchange.Wrap(exchange.CodeInternal, err, "The %s could not be stored or read.", what)
}

func translatePostgres(pe *pq.Error, what string) error {
	switch {
	case pe.Code == pgUniqueViolation:
		return exchange.Wrap(exchange.CodeConflict, pe, "Such a %s exists already.", what)
	case pe.Code == pgCheckViolation && pe.Constraint == "ledger_accounts_available":
		return exchange.Wrap(exchange.CodeInsufficientFunds, pe, "The available balance is too small.")
	case pe.Code == pgCheckViolation && pe.Constraint == "collections_refunded":
		return exchange.Wrap(exchange.CodeInsufficientFunds, pe, "Refunds can't exceed what was paid.")
	case pe.Code == pgForeignGas:
		return exchange.Wrap(exchange.CodeConflict, pe, "The house has too few coins in the wallet for the fee.")
	case pe.Code == pgTwoPersons:
		return exchange.Wrap(exchange.CodeForbidden, pe, "Two persons who may have to agree to that.")
	case pe.Code == pgSuspended:
		return exchange.Wrap(exchange.CodeSuspended, pe, "Payouts are suspended: the mobile money operator refuses the house's credential.")
	case pe.Code == pgIllegalTransition:
		return exchange.Wrap(exchange.CodeStateConflict, pe, "The %s is in a state that does not allow it.", what)
	case pe.Code == pgForeignKeyViolation:
		return exchange.Wrap(exchange.CodeConflict, pe, "The %s refers to something that does not exist, or is still in use.", what)
	case pe.Code == pgSerializationFailure, pe.Code == pgDeadlockDetected, pe.Code == pgQueryCanceled, pe.Code == pgLockNotAvailable:
		return exchange.Wrap(exchange.CodeUnavailable, pe, "The database is too busy; try again.")
	}
	switch pe.Code.Class() {
	case "08", "53", "57", "58": // connection, resources, operator intervention, system
		return exchange.Wrap(exchange.CodeUnavailable, pe, "The database can't be reached.")
	}
	return exchange.Wrap(exchange.CodeInternal, pe, "The %s could not be stored or read.", what)
}

// connectionTrouble tells errors of the way to the database from errors of a query.
func connectionTrouble(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, net.ErrClosed) {
		return true
	}
	text := err.Error()
	return strings.Contains(text, "EOF") || strings.Contains(text, "connection reset") || strings.Contains(text, "sql: database is closed")
}

// lostRace tells that a transaction failed only because of another one and may be repeated.
func lostRace(err error) bool {
	pe, ok := errors.AsType[*pq.Error](err)
	return ok && (pe.Code == pgSerializationFailure || pe.Code == pgDeadlockDetected)
}

// brokeConstraint tells whether the error is a violation of the named unique or check constraint.
func brokeConstraint(err error, name string) bool {
	pe, ok := errors.AsType[*pq.Error](err)
	return ok && pe.Constraint == name
}

// pause waits a little longer with each try, at random, so that two losers do not meet again.
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

// require turns a broken rule about one field into CodeInvalid.
func require(ok bool, pointer, code, message string) error {
	if ok {
		return nil
	}
	return exchange.Invalid(exchange.FieldError{Pointer: pointer, Code: code, Message: message})
}
