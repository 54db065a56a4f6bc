package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Payouts that were made before the database was put back, and that no row of it knows. Two officers attest them by their
// receipts in the operator's statement. They are booked and never sent.

const lostReceipt = `SELECT coalesce(max(receipt), '') FROM payout_attestations WHERE lost AND object_type = $1 AND object_id = $2 AND ($3 = '' OR receipt = $3)`

// lostReceipt is the receipt by which two officers attested a payout of an object that the database lost; empty when they did
// not. A named receipt must be that one.
func (t unitTx) lostReceipt(ctx context.Context, of exchange.MomoObject, named string) (string, error) {
	var receipt string
	err := t.Get(ctx, &receipt, lostReceipt, of.Type, of.ID, named)
	return receipt, err
}

// BookLostPayout books a payout that was made before the database was put back, by the receipt that two officers attested.
// Nothing is sent for it. A repeated call changes nothing. CodeStateConflict when two officers did not attest it while the
// database was put back: elsewhere a payout has its attempt.
func (s *Store) BookLostPayout(ctx context.Context, of exchange.MomoObject, a exchange.PaymentAttempt, receipt string) error {
	_, err := change(ctx, s, "payout", of.ID, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		var none struct{}
		x, err := t.lockedPayoutObject(ctx, of)
		if err != nil {
			return none, exchange.Posting{}, err
		}
		if p := x.owes(); p.Paid && p.Receipt == receipt {
			return none, exchange.Posting{}, nil
		}
		attested, err := t.lostReceipt(ctx, of, receipt)
		if err == nil && attested == "" {
			err = exchange.Errorf(exchange.CodeStateConflict,
				"No payout of ours is under way. One that was made without it is booked only if two officers attested its receipt while the database was put back and not released.")
		}
		if err != nil {
			return none, exchange.Posting{}, err
		}
		_, posting, err := t.bookLost(ctx, x, a, attested)
		return none, posting, err
	})
	return err
}

// bookLost stores the attempt of a lost payout as proven, ends its object and books the money out of the float, which it
// never reserved.
func (t unitTx) bookLost(ctx context.Context, x payoutObject, a exchange.PaymentAttempt, receipt string) (exchange.PaymentAttempt, exchange.Posting, error) {
	var none exchange.Posting
	p := x.owes()
	a.Direction, a.Object, a.Amount, a.Phone, a.Reference = exchange.Payout, p.Object, p.Amount, p.Phone, p.Reference
	a.CallbackToken, a.StatusToken = "", "" // no result comes
	if err := t.mayLeave(ctx, p.Object); err != nil {
		return exchange.PaymentAttempt{}, none, err
	}
	if err := x.begin(ctx, t); err != nil {
		return exchange.PaymentAttempt{}, none, err
	}
	created, err := t.insertAttempt(ctx, a, uuid.Nil)
	if err != nil {
		return exchange.PaymentAttempt{}, none, err
	}
	if err := t.recordAttempt(ctx, "created", x, created); err != nil {
		return exchange.PaymentAttempt{}, none, err
	}
	obs := exchange.Observation{
		State: exchange.SeenSucceeded, Class: exchange.ClassAttested, Code: string(exchange.ClassAttested), Receipt: receipt,
		Text: "two officers attested it after the database was put back", At: t.s.now(),
	}
	if x, err = t.lockedPayoutObject(ctx, p.Object); err != nil { // as it is under way
		return exchange.PaymentAttempt{}, none, err
	}
	done, _, err := t.provenAttempt(ctx, x, a.ID, obs)
	if err != nil {
		return exchange.PaymentAttempt{}, none, err
	}
	posting, err := x.complete(ctx, t, done, receipt)
	if err != nil {
		return exchange.PaymentAttempt{}, none, err
	}
	charge, err := t.charged(ctx, done, obs)
	posting.Entries = append(posting.Entries, charge...)
	return done, posting, err
}
