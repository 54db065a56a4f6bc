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

// A payment is stray when no unpaid attempt has its reference, and no deposit that its flow is only about to wait for. A failed attempt
// may still be paid late, and its flow is signalled for that; the payment becomes stray only after the given time.
const readStray = `SELECT id FROM c2b_payments p WHERE status = 'unmatched' AND exception_id IS NULL AND listed_at IS NOT NULL
AND (paid_at < $1 OR NOT EXISTS (SELECT FROM payment_attempts a WHERE a.direction = 'collection' AND a.reference = p.reference AND a.reference <> ''
    AND a.status <> 'succeeded') AND NOT EXISTS (SELECT FROM otc_deposits d WHERE d.payment_reference = p.reference AND d.method IN ('momo', 'c2b') AND d.received_at IS NULL
    AND d.status IN ('pending', 'assigned', 'claimed', 'info_required', 'on_hold')))
ORDER BY paid_at, id LIMIT $2`

// StrayPayments are the payments of the provider's statement that no attempt waits for, oldest first: those without an
// open reference, and those paid before the given time and still unmatched.
func (s *Store) StrayPayments(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error) {
	ids := []uuid.UUID{}
	return ids, translate(s.db.All(ctx, &ids, readStray, before, limit), "payments")
}

const lockC2B = `SELECT ` + c2bColumns + ` FROM c2b_payments WHERE id = $1 FOR NO KEY UPDATE`

const saveC2BAside = `UPDATE c2b_payments SET exception_id = $2, updated_at = $3 WHERE id = $1`

// OpenUnmatched books an unmatched payment into suspense and opens its exception, both once. One that was matched
// meanwhile or already set aside stays as it is. CodeStateConflict for a payment that is not in the provider's
// statement: a notice is not signed.
func (s *Store) OpenUnmatched(ctx context.Context, id uuid.UUID) (exchange.C2BPayment, error) {
	return change(ctx, s, "payment", id, func(ctx context.Context, t unitTx) (exchange.C2BPayment, exchange.Posting, error) {
		var none exchange.Posting
		var p exchange.C2BPayment
		if err := t.Get(ctx, &p, lockC2B, id); err != nil {
			return exchange.C2BPayment{}, none, translate(err, "payment")
		}
		if p.Status == exchange.C2BMatched || p.ExceptionID != uuid.Nil {
			return p, none, nil
		}
		if p.ListedAt.IsZero() {
			return p, none, exchange.Errorf(exchange.CodeStateConflict, "The mobile money operator's statement does not list the payment yet.")
		}
		x, err := t.openStray(ctx, p)
		if err != nil {
			return p, none, err
		}
		if _, err := t.Exec(ctx, saveC2BAside, id, x.ID, t.s.now()); err != nil {
			return p, none, err
		}
		p.ExceptionID = x.ID
		return p, exchange.Posting{Entries: []exchange.Entry{{
			// The key is the same as for money booked for an order, so that no receipt is booked as both.
			Key: "momo:" + p.Receipt, Kind: "payment.unmatched", ObjectType: "payment_exception", ObjectID: x.ID,
			Lines: []exchange.Line{
				exchange.Debit(exchange.House(exchange.AccMomoCollection, p.Amount.Asset()), p.Amount),
				exchange.Credit(exchange.House(exchange.AccSuspense, p.Amount.Asset()), p.Amount),
			},
		}}}, nil
	})
}

const depositOfReference = `
SELECT d.id, d.merchant_id, a.id AS attempt_id FROM otc_deposits d JOIN payment_attempts a ON a.deposit_id = d.id WHERE d.payment_reference = $1 ORDER BY a.created_at DESC LIMIT 1`

// openStray opens the exception of a payment that fits nothing. One that names a deposit is late, for its merchant.
func (t unitTx) openStray(ctx context.Context, p exchange.C2BPayment) (exchange.PaymentException, error) {
	x := exchange.PaymentException{Kind: exchange.ExcUnmatched, Receipt: p.Receipt, Amount: p.Amount}
	d, found, err := readFound[struct{ ID, MerchantID, AttemptID uuid.UUID }](ctx, t, depositOfReference, p.Reference)
	if err != nil {
		return x, err
	}
	if found {
		x.Kind, x.DepositID, x.AttemptID = exchange.ExcLate, d.ID, d.AttemptID
	}
	return t.openException(ctx, d.MerchantID, x)
}

const countUnlisted = `SELECT count(*) FROM c2b_payments WHERE listed_at IS NULL AND paid_at >= $1 AND paid_at < $2`

// UnlistedPayments counts the known payments of an interval that the provider's statement does not list.
func (s *Store) UnlistedPayments(ctx context.Context, from, to time.Time) (int, error) {
	var n int
	return n, translate(s.db.Get(ctx, &n, countUnlisted, from, to), "payments")
}

// Why a statement line is quarantined.
const (
	LineUnreadable = "unreadable" // no payment could be parsed
	LineRefused    = "refused"    // the database refused the payment
)

const insertQuarantinedLine = `
INSERT INTO c2b_quarantine (digest, receipt, kind, amount, reason, paid_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (digest) DO NOTHING`

// QuarantineLine keeps a statement line that can't be taken as a payment, once, for an operator to review. It reports
// whether the line is new.
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

// The largest lengths of the stored parts of a line.
const (
	maxLineText   = 60
	maxLineAmount = 40
)
