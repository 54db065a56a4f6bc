package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Nothing waits for a payment when no attempt under its reference is without money. One that failed may still be
// paid late, and its flow is woken for that; until the given time it is given a chance.
const readStray = `SELECT id FROM c2b_payments p WHERE status = 'unmatched' AND exception_id IS NULL AND listed_at IS NOT NULL
AND (paid_at < $1 OR NOT EXISTS (SELECT FROM payment_attempts a WHERE a.direction = 'collection' AND a.reference = p.reference AND a.reference <> ''
    AND a.status <> 'succeeded'))
ORDER BY paid_at, id LIMIT $2`

// StrayPayments are the payments of the operator's statement that nothing waits for, the oldest first: those under
// no reference that is open, and those that were paid before a time and have found no place since.
func (s *Store) StrayPayments(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error) {
	ids := []uuid.UUID{}
	return ids, translate(s.readAll(ctx, &ids, readStray, before, limit), "payments")
}

const lockC2B = `SELECT ` + c2bColumns + ` FROM c2b_payments WHERE id = $1 FOR NO KEY UPDATE`

const saveC2BAside = `UPDATE c2b_payments SET exception_id = $2, updated_at = $3 WHERE id = $1`

// OpenUnmatched books a payment that belongs to nobody into suspense and opens its exception, both once. One that was
// matched meanwhile, or lies aside, stays as it is. CodeStateConflict for one that the operator's statement was not
// seen to hold: a notice is not signed.
func (s *Store) OpenUnmatched(ctx context.Context, id uuid.UUID) (exchange.C2BPayment, error) {
	return change(ctx, s, "payment", id, func(ctx context.Context, t unitTx) (exchange.C2BPayment, exchange.Posting, error) {
		var none exchange.Posting
		var r c2bRow
		if err := t.get(ctx, &r, lockC2B, id); err != nil {
			return exchange.C2BPayment{}, none, translate(err, "payment")
		}
		p, err := r.payment()
		if err != nil || p.Status == exchange.C2BMatched || p.ExceptionID != uuid.Nil {
			return p, none, err
		}
		if p.ListedAt.IsZero() {
			return p, none, exchange.Errorf(exchange.CodeStateConflict, "The operator's statement was not seen to hold the payment.")
		}
		x, err := t.openException(ctx, exchange.Order{}, exchange.PaymentException{Kind: exchange.ExcUnmatched, Receipt: p.Receipt, Amount: p.Amount})
		if err != nil {
			return p, none, err
		}
		if _, err := t.exec(ctx, saveC2BAside, id, x.ID, t.s.now()); err != nil {
			return p, none, err
		}
		p.ExceptionID = x.ID
		return p, exchange.Posting{Entries: []exchange.Entry{{
			// The key is that of money booked for an order, so that no receipt is booked as both.
			Key: "momo:" + p.Receipt, Kind: "payment.unmatched", ObjectType: "payment_exception", ObjectID: x.ID,
			Lines: []exchange.Line{
				exchange.Debit(exchange.House(exchange.AccMomoCollection, p.Amount.Asset()), p.Amount),
				exchange.Credit(exchange.House(exchange.AccSuspense, p.Amount.Asset()), p.Amount),
			},
		}}}, nil
	})
}

const countUnlisted = `SELECT count(*) FROM c2b_payments WHERE listed_at IS NULL AND paid_at >= $1 AND paid_at < $2`

// UnlistedPayments counts the payments of a time that we know of and the operator's statement was not seen to hold.
func (s *Store) UnlistedPayments(ctx context.Context, from, to time.Time) (int, error) {
	var n int
	return n, translate(s.read(ctx, &n, countUnlisted, from, to), "payments")
}

// Why a line of the statement is kept and not taken.
const (
	LineUnreadable = "unreadable" // no payment can be read in it
	LineRefused    = "refused"    // the database takes no such payment
)

const insertQuarantinedLine = `
INSERT INTO c2b_quarantine (digest, receipt, kind, amount, reason, paid_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (digest) DO NOTHING`

// QuarantineLine keeps a line of the operator's statement that can't be taken for a payment, once, for a person to
// look at. It tells whether the line is new.
func (s *Store) QuarantineLine(ctx context.Context, o exchange.Observation, reason string) (bool, error) {
	amount := ""
	if o.Amount.Asset() != "" {
		amount = o.Amount.String()
	}
	digest := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %d", o.Receipt, o.Code, amount, o.Reference, partyOf(o), o.At.UnixMilli()))
	n, err := s.write(ctx, "line of the statement", insertQuarantinedLine, hex.EncodeToString(digest[:]), clip(o.Receipt, maxLineText), clip(o.Code, maxLineText),
		clip(amount, maxLineAmount), reason, nullTime(o.At), s.now())
	return n == 1, err
}

// Lengths of what is kept of a line.
const (
	maxLineText   = 60
	maxLineAmount = 40
)
