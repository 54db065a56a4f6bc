package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Payouts by mobile money of any object. The order is locked first, then the paid object, then the attempt.

// payoutObject is a locked object that mobile money is paid out for: what it owes, and what its steps change. Each type
// has one file that implements it, a line in payoutTypes, and its column and its guard in payment_attempts.
type payoutObject interface {
	parties() (owner, vendor uuid.UUID)
	owes() exchange.Payable
	// over reports whether nothing is owed any more, so that another payment is one too many.
	over() bool
	// underWay reports whether an attempt has begun and is not decided.
	underWay() bool
	// ready reports whether a payout may begin. It is false after the object was parked for an officer instead.
	ready(ctx context.Context, t unitTx) (bool, error)
	begin(ctx context.Context, t unitTx) error
	// complete ends the object and returns what that books, without the float's hold and the provider's charge.
	complete(ctx context.Context, t unitTx, a exchange.PaymentAttempt, receipt string) (exchange.Posting, error)
	// again is called when a payment was made that is one too many.
	again(ctx context.Context, t unitTx) error
	refuse(ctx context.Context, t unitTx, code string) error
	doubt(ctx context.Context, t unitTx, claimed bool) error
}

// payoutType reads the objects of a type.
type payoutType struct {
	read func(ctx context.Context, s *Store, id uuid.UUID) (exchange.Payable, error)
	lock func(ctx context.Context, t unitTx, id uuid.UUID) (payoutObject, error)
}

var payoutTypes = map[exchange.MomoObjectType]payoutType{
	exchange.MomoOrder:  {read: readOrderPayable, lock: lockOrderPayoutObject},
	exchange.MomoRefund: {read: readRefundPayable, lock: lockRefundPayoutObject},

	exchange.MomoWithdrawal: {read: readWithdrawalPayable, lock: lockWithdrawalPayout},
}

func payoutTypeOf(of exchange.MomoObject) (payoutType, error) {
	kind, known := payoutTypes[of.Type]
	if !known {
		return kind, exchange.Errorf(exchange.CodeUnsupported, "Mobile money is not paid out for a %s.", of.Type)
	}
	return kind, nil
}

// Payable reads what an object owes by mobile money. CodeUnsupported for an object that never owes any.
func (s *Store) Payable(ctx context.Context, of exchange.MomoObject) (exchange.Payable, error) {
	kind, err := payoutTypeOf(of)
	if err != nil {
		return exchange.Payable{}, err
	}
	return kind.read(ctx, s, of.ID)
}

func (t unitTx) lockedPayoutObject(ctx context.Context, of exchange.MomoObject) (payoutObject, error) {
	kind, err := payoutTypeOf(of)
	if err != nil {
		return nil, err
	}
	return kind.lock(ctx, t, of.ID)
}

// BeginPayout stores a payout attempt before the request to the provider, and reserves its money and the provider's
// charge in the payout float; CodeInsufficientFunds when the float is too low, CodeSuspended while the provider refuses
// our credential, CodeLimitReached when the payee has reached the daily limit. A repeated call with the same attempt
// returns the existing one. CodeStateConflict while an earlier attempt was not definitely refused, and when the object
// owes nothing now; CodeForbidden with the cause ErrOfficers when more officers have to decide. A payout that two officers attested
// as made before the database was put back is booked instead, and the attempt has succeeded. An object that is parked for an officer instead returns an attempt without an id, and nothing must
// be sent.
func (s *Store) BeginPayout(ctx context.Context, of exchange.MomoObject, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	return change(ctx, s, "payout", of.ID, func(ctx context.Context, t unitTx) (exchange.PaymentAttempt, exchange.Posting, error) {
		var none exchange.Posting
		x, err := t.lockedPayoutObject(ctx, of)
		if err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		p := x.owes()
		a.Direction, a.Object, a.Amount, a.Phone, a.Reference = exchange.Payout, of, p.Amount, p.Phone, p.Reference
		old, found, err := t.beganBefore(ctx, a)
		if err != nil || found {
			return old, none, err
		}
		if p.Claimed {
			return exchange.PaymentAttempt{}, none, exchange.Errorf(exchange.CodeStateConflict,
				"There is evidence that a refused payout was made. Settle that before another payout begins.")
		}
		if ready, err := x.ready(ctx, t); err != nil || !ready {
			return exchange.PaymentAttempt{}, none, err
		}
		if receipt, err := t.lostReceipt(ctx, of, ""); err != nil || receipt != "" {
			if err != nil {
				return exchange.PaymentAttempt{}, none, err
			}
			return t.bookLost(ctx, x, a, receipt)
		}
		if err := t.payeeHasRoom(ctx, p); err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		if err := t.mayLeave(ctx, of); err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		if err := x.begin(ctx, t); err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		return t.reservePayout(ctx, x, a)
	})
}

// mayLeave lets the release of an object pass for one payout. CodeForbidden with the cause ErrOfficers when more officers have to
// approve; CodeStateConflict with the cause ErrInactive where no officer could help, because nothing more begins for the withdrawal.
func (t unitTx) mayLeave(ctx context.Context, of exchange.MomoObject) error {
	purpose := exchange.ReleasePayout
	switch of.Type {
	case exchange.MomoRefund:
		purpose = exchange.ReleaseRefund
	case exchange.MomoWithdrawal:
		purpose = exchange.ReleaseWithdrawal
	case exchange.MomoOrder, exchange.MomoDeposit:
	}
	v, err := t.releaseOwed(ctx, purpose, of.ID)
	if err != nil || v.Pass {
		return err
	}
	if of.Type == exchange.MomoWithdrawal {
		var gone bool
		if err := t.Get(ctx, &gone, withdrawalPartyGone, of.ID); err != nil {
			return err
		}
		if gone {
			return exchange.Wrap(exchange.CodeStateConflict, exchange.ErrInactive, partyGone)
		}
	}
	return exchange.Wrap(exchange.CodeForbidden, exchange.ErrOfficers, "The payout needs the decision of another officer.")
}

// reservePayout stores an attempt and returns the hold of its money and the provider's charge.
func (t unitTx) reservePayout(ctx context.Context, x payoutObject, a exchange.PaymentAttempt) (exchange.PaymentAttempt, exchange.Posting, error) {
	hold, err := uuid.NewV7()
	if err != nil {
		return a, exchange.Posting{}, err
	}
	created, err := t.insertAttempt(ctx, a, hold)
	if err != nil {
		return exchange.PaymentAttempt{}, exchange.Posting{}, err
	}
	charge, err := t.charge(ctx, created.Amount)
	if err != nil {
		return exchange.PaymentAttempt{}, exchange.Posting{}, err
	}
	return created, exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: hold, Key: "payout:" + a.ID.String(), Account: exchange.House(exchange.AccMomoPayout, a.Amount.Asset()),
		Amount: a.Amount.Add(charge), ObjectType: "payment_attempt", ObjectID: a.ID,
	}}}}, t.recordAttempt(ctx, "created", x, created)
}

// CompletePayout ends a payout that two sources prove: attempt, object and ledger in one transaction. A repeated call
// changes nothing. An attempt that proves true when nothing is owed any more is booked as paid twice, with an exception
// for an officer. CodeConflict when the sources report another amount than was owed.
func (s *Store) CompletePayout(ctx context.Context, of exchange.MomoObject, attemptID uuid.UUID, obs exchange.Observation) (exchange.Payable, error) {
	if obs.Receipt == "" || len(obs.Receipt) > 40 {
		return exchange.Payable{}, exchange.Errorf(exchange.CodeInvalid, "A completed payout needs its receipt.")
	}
	return change(ctx, s, "payout", of.ID, func(ctx context.Context, t unitTx) (exchange.Payable, exchange.Posting, error) {
		var none exchange.Posting
		x, err := t.lockedPayoutObject(ctx, of)
		if err != nil {
			return exchange.Payable{}, none, err
		}
		a, known, err := t.provenAttempt(ctx, x, attemptID, obs)
		if err != nil || known {
			return x.owes(), none, err
		}
		if x.over() {
			p, err := t.paidAgain(ctx, x, a, obs)
			return x.owes(), p, err
		}
		holds, err := t.captureFloat(ctx, a.ID)
		if err != nil {
			return x.owes(), none, err
		}
		posting, err := x.complete(ctx, t, a, obs.Receipt)
		if err != nil {
			return x.owes(), none, err
		}
		charge, err := t.charged(ctx, a, obs)
		posting.Entries = append(posting.Entries, charge...)
		posting.Holds = append(posting.Holds, holds...)
		return x.owes(), posting, err
	})
}

// provenAttempt stores the success of an attempt, and reports whether it was already booked with the same receipt.
func (t unitTx) provenAttempt(ctx context.Context, x payoutObject, id uuid.UUID, obs exchange.Observation) (exchange.PaymentAttempt, bool, error) {
	before, err := t.lockedAttempt(ctx, id)
	p := x.owes()
	switch {
	case err != nil:
		return before, false, err
	case before.Direction != exchange.Payout || before.Object != p.Object:
		return before, false, exchange.Errorf(exchange.CodeConflict, "The attempt is not a payout of the %s.", p.Object.Type)
	case obs.Amount.Positive() && !obs.Amount.Equal(p.Amount):
		return before, false, exchange.Errorf(exchange.CodeConflict, "The payout moved another amount than the %s's.", p.Object.Type)
	case before.Status == exchange.AttemptSucceeded && before.Receipt == obs.Receipt:
		return before, true, nil
	case before.Status == exchange.AttemptSucceeded && (obs.Class == exchange.ClassAttested || before.ResultClass == exchange.ClassAttested || p.Object.Type == exchange.MomoOrder):
		// Of two receipts one may be an officer's mistake, so the other is no second payment.
		return before, false, exchange.Errorf(exchange.CodeConflict, "The attempt was already proven with another receipt.")
	case before.Status == exchange.AttemptSucceeded: // two sources prove another receipt: it was made more than once
		return before, false, nil
	}
	a := before
	a.Status, a.Soft, a.ResultCode, a.ResultClass, a.ResultText = exchange.AttemptSucceeded, false, obs.Code, obs.Class, clip(obs.Text, 500)
	a.Receipt, a.Moved, a.SettledAt = obs.Receipt, p.Amount, t.s.now()
	a, err = t.saveAttempt(ctx, x, before, a)
	return a, false, err
}

const holdOfAttempt = `SELECT h.id, h.status FROM payment_attempts a JOIN holds h ON h.id = a.hold_id WHERE a.id = $1`

// captureFloat uses up a payout's reservation. A payout that seemed to have failed may have released it already; then
// the float is debited directly.
func (t unitTx) captureFloat(ctx context.Context, attemptID uuid.UUID) ([]exchange.HoldOp, error) {
	var h struct {
		ID     uuid.UUID
		Status exchange.HoldStatus
	}
	if err := t.Get(ctx, &h, holdOfAttempt, attemptID); err != nil {
		return nil, translate(err, "hold")
	}
	if h.Status != exchange.HoldHeld {
		return nil, nil
	}
	return []exchange.HoldOp{{Verb: exchange.HoldCapture, Hold: exchange.Hold{ID: h.ID}}}, nil
}

// paidAgain books a payment of an object that nothing is owed for any more. The money is gone, so it is booked in any
// case: the payee owes it, and an officer decides.
func (t unitTx) paidAgain(ctx context.Context, x payoutObject, a exchange.PaymentAttempt, obs exchange.Observation) (exchange.Posting, error) {
	var none exchange.Posting
	p := x.owes()
	if obs.Receipt == p.Receipt {
		return none, nil // the payment that an officer entered before it was proven
	}
	if _, known, err := t.exceptionOf(ctx, obs.Receipt); err != nil || known {
		return none, err
	}
	holds, err := t.captureFloat(ctx, a.ID)
	if err != nil {
		return none, err
	}
	if err := x.again(ctx, t); err != nil {
		return none, err
	}
	owner, _ := x.parties()
	e, err := t.openException(ctx, owner, exchange.PaymentException{
		Kind: exchange.ExcPaidTwice, OrderID: p.OrderID, AttemptID: a.ID, Receipt: obs.Receipt, Amount: p.Amount,
	})
	if err != nil {
		return none, err
	}
	charge, err := t.charged(ctx, a, obs)
	return exchange.Posting{Holds: holds, Entries: append(charge, exchange.Entry{
		Key: "payout:" + a.ID.String() + ":again:" + obs.Receipt, Kind: "payout.paid_twice", ObjectType: "payment_exception", ObjectID: e.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccReceivable, p.Amount.Asset()), p.Amount),
			exchange.Credit(exchange.House(exchange.AccMomoPayout, p.Amount.Asset()), p.Amount),
		},
	})}, err
}

const openPayouts = `SELECT count(*) FROM payment_attempts
WHERE object_type = $1 AND object_id = $2 AND direction = 'payout' AND status IN ('created', 'unknown', 'accepted')`

const heldOfFailed = `
SELECT h.id FROM payment_attempts a JOIN holds h ON h.id = a.hold_id
WHERE a.object_type = $1 AND a.object_id = $2 AND a.direction = 'payout' AND a.status IN ('refused', 'failed') AND h.status = 'held'
ORDER BY h.id`

// FailPayout stores that a payout was definitely refused, with the provider's code, and frees the float.
// CodeStateConflict while an attempt may still move money. For an object that has ended or whose payout is already
// refused, only the float of failed attempts is freed.
func (s *Store) FailPayout(ctx context.Context, of exchange.MomoObject, code string) (exchange.Payable, error) {
	return change(ctx, s, "payout", of.ID, func(ctx context.Context, t unitTx) (exchange.Payable, exchange.Posting, error) {
		var free exchange.Posting
		x, err := t.lockedPayoutObject(ctx, of)
		if err != nil {
			return exchange.Payable{}, free, err
		}
		var open int
		if err := t.Get(ctx, &open, openPayouts, of.Type, of.ID); err != nil {
			return x.owes(), free, err
		}
		if open > 0 {
			return x.owes(), free, exchange.Errorf(exchange.CodeStateConflict, "The payout of the %s may still move money.", of.Type)
		}
		var ids []uuid.UUID
		if err := t.All(ctx, &ids, heldOfFailed, of.Type, of.ID); err != nil {
			return x.owes(), free, err
		}
		for _, id := range ids {
			free.Holds = append(free.Holds, exchange.HoldOp{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: id}})
		}
		if x.underWay() {
			err = x.refuse(ctx, t, code)
		}
		return x.owes(), free, err
	})
}

// DoubtPayout stores evidence that a payout recorded as refused was made. No other attempt begins while it is claimed, of
// an order or of a refund that is not completed. A refund of an order's crypto that has not left yet waits for an
// officer, and needs a second one from now on. With claimed false the provider has denied it since: the payout may be
// retried, and an order's stays doubted. The check for late results repeats its claim until the provider denies it. A
// claim that an officer dismissed does not stop the refund of crypto again, but a new claim after a denial does.
func (s *Store) DoubtPayout(ctx context.Context, of exchange.MomoObject, claimed bool) error {
	_, err := change(ctx, s, "payout", of.ID, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		x, err := t.lockedPayoutObject(ctx, of)
		if err == nil {
			err = x.doubt(ctx, t, claimed)
		}
		return struct{}{}, exchange.Posting{}, err
	})
	return err
}

// SettlePayout ends a payout by a receipt that an officer found: of the attempt, or, for a refund that waits for an
// officer, of a payment by other means.
func (s *Store) SettlePayout(ctx context.Context, of exchange.MomoObject, attemptID uuid.UUID, obs exchange.Observation, by exchange.Principal) error {
	if of.Type == exchange.MomoRefund {
		r, err := s.Refund(ctx, of.ID)
		if err != nil {
			return err
		}
		if r.Status != exchange.RefundProcessing {
			_, err = s.ResolveRefund(ctx, of.ID, obs.Receipt, by)
			return err
		}
	}
	_, err := s.CompletePayout(ctx, of, attemptID, obs)
	return err
}
