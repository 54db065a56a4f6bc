package store

import (
	"errors"

	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// partyGone is the message of a refusal with the cause exchange.ErrInactive.
const partyGone = "An account that takes part is switched off, or its destination was removed."

// The codes of our own triggers that a caller learns of. The others, KV002 (a row that never changes) and KV003 (an
// unbalanced entry), mean a bug.
const (
	// codeIllegalTransition is raised by the trigger that enforces the state machines.
	codeIllegalTransition = "KV001"
	// codeForeignGas is raised when a fee could be paid with coins of a wallet's owner.
	codeForeignGas = "KV005"
	// codeTwoOfficers is raised when a control would be loosened without a second officer, or by one who no longer may.
	codeTwoOfficers = "KV006"
	// codeSuspended is raised when a payout would begin while the provider refuses our credential, and when anything would be
	// requested of it from another database than the one that was released.
	codeSuspended = "KV055"
	// codePayeeDay is raised when a payout would bring its payee above the mobile money operator's daily limit.
	codePayeeDay = "KV056"
	// codeFrozen is raised when a payout would begin while outgoing payments are frozen.
	codeFrozen = "KV057"
	// codeInactive is raised when a payout would begin for a party that is switched off.
	codeInactive = "KV058"
	// codeCollar is raised when an order would take an offer whose rate is far from the market's.
	codeCollar = "KV059"
	// codeFeeTie is raised when two fee profiles would be equally close to some operations.
	codeFeeTie = "KV060"
)

// translate is pg.Translate with the errors that our own constraints and triggers raise.
func translate(err error, what string) error {
	if _, own := errors.AsType[*exchange.Error](err); own {
		return pg.Translate(err, what)
	}
	pe, ok := errors.AsType[*pq.Error](err)
	switch {
	case !ok:
	case pe.Code == pg.CheckViolation && pe.Constraint == "ledger_accounts_available":
		return exchange.Wrap(exchange.CodeInsufficientFunds, pe, "The available balance is too small.")
	case pe.Code == pg.CheckViolation && pe.Constraint == "collections_refunded":
		return exchange.Wrap(exchange.CodeInsufficientFunds, pe, "Refunds can't exceed what was paid.")
	case pe.Code == codeForeignGas:
		return exchange.Wrap(exchange.CodeConflict, pe, "The wallet has too little native coin of the house for the network's fee.")
	case pe.Code == codeTwoOfficers:
		return exchange.Wrap(exchange.CodeForbidden, pe, "This needs two authorised officers.")
	case pe.Code == codeSuspended:
		return exchange.Wrap(exchange.CodeSuspended, pe, "Payouts are suspended: the mobile money operator refuses our credentials, or the database was put back and is not released yet.")
	case pe.Code == codeFrozen:
		return exchange.Wrap(exchange.CodeSuspended, errors.Join(exchange.ErrFrozen, pe), "Outgoing payments are frozen.")
	case pe.Code == codeInactive:
		return exchange.Wrap(exchange.CodeStateConflict, errors.Join(exchange.ErrInactive, pe), partyGone)
	case pe.Code == codeCollar:
		return exchange.Wrap(exchange.CodeStateConflict, pe, "The offer's rate is too far from the market's.")
	case pe.Code == codeFeeTie:
		return exchange.Wrap(exchange.CodeConflict, pe, "Another fee profile is as close to some operations.")
	case pe.Code == codePayeeDay:
		return exchange.Wrap(exchange.CodeLimitReached, pe, "The payee has reached the mobile money operator's daily limit. The payout can be made tomorrow.")
	case pe.Code == codeIllegalTransition:
		return exchange.Wrap(exchange.CodeStateConflict, pe, "The state of the %s does not allow this.", what)
	}
	return pg.Translate(err, what)
}

// require returns CodeInvalid for a broken rule about one field.
func require(ok bool, pointer, code, message string) error {
	if ok {
		return nil
	}
	return exchange.Invalid(exchange.FieldError{Pointer: pointer, Code: code, Message: message})
}
