package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const c2bColumns = `id, receipt, status, amount||' '||asset AS amount, reference, party_hash, paid_at, coalesce(object_type, '') AS "object.type", object_id AS "object.id", attempt_id, exception_id, notified_at, listed_at, booked_at,
	(SELECT d.id FROM otc_deposits d WHERE d.named_payment_id = c2b_payments.id AND d.received_at IS NULL AND c2b_payments.status = 'unmatched'
		AND d.status IN ('pending', 'assigned', 'claimed', 'info_required', 'on_hold') ORDER BY d.id LIMIT 1) AS named_for, disputed, created_at, updated_at`

// typed normalises a reference that a payer typed to the form in which ours are written.
func typed(reference string) string { return strings.ToUpper(strings.TrimSpace(reference)) }

func partyOf(o exchange.Observation) string {
	if o.PhoneHash == "" && o.Phone != "" {
		return o.Phone.Hash()
	}
	return o.PhoneHash
}

// The first channel that reports a receipt writes its row; later ones add what they know. A channel with nothing new
// writes nothing.
const noteC2BNotice = `
INSERT INTO c2b_payments AS old (id, receipt, status, asset, amount, reference, party_hash, paid_at, notified_at, listed_at, created_at, updated_at)
VALUES ($1, $2, 'unmatched', $3, $4, $5, $6, $7, $8, $9, $10, $10)
ON CONFLICT (receipt) DO UPDATE SET
    notified_at = coalesce(old.notified_at, excluded.notified_at), listed_at = coalesce(old.listed_at, excluded.listed_at),
    reference = CASE old.reference WHEN '' THEN excluded.reference ELSE old.reference END,
    party_hash = CASE old.party_hash WHEN '' THEN excluded.party_hash ELSE old.party_hash END,
    disputed = old.disputed OR old.asset <> excluded.asset OR old.amount <> excluded.amount
        OR (old.reference <> '' AND excluded.reference <> '' AND old.reference <> excluded.reference),
    updated_at = excluded.updated_at
WHERE (old.notified_at IS NULL AND excluded.notified_at IS NOT NULL) OR (old.listed_at IS NULL AND excluded.listed_at IS NOT NULL)
    OR (NOT old.disputed AND (old.amount <> excluded.amount OR old.reference <> excluded.reference))
RETURNING xmax = 0`

// noteC2B stores a channel's report in the payment's row, and returns whether the row is new.
func (t unitTx) noteC2B(ctx context.Context, o exchange.Observation) (created bool, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return false, err
	}
	now := t.s.now()
	var notified, listed, paid sql.NullTime
	switch o.Source {
	case exchange.SourceConfirmation:
		notified = nullTime(now)
	case exchange.SourceStatement:
		listed = nullTime(now)
	case exchange.SourceCallback, exchange.SourceQuery:
	}
	if paid = nullTime(o.At); !paid.Valid {
		paid = nullTime(now)
	}
	var rows []bool
	err = t.All(ctx, &rows, noteC2BNotice, id, o.Receipt, o.Amount.Asset(), o.Amount.Decimal(), typed(o.Reference), partyOf(o), paid, notified, listed, now)
	return len(rows) == 1 && rows[0], err
}

const insertC2B = `
INSERT INTO c2b_payments (id, receipt, status, asset, amount, reference, party_hash, paid_at, created_at, updated_at)
VALUES ($1, $2, 'unmatched', $3, $4, $5, $6, $7, $8, $8) ON CONFLICT (receipt) DO NOTHING`

// A payment that was set aside as an exception is no longer booked for an object: it would count twice.
const claimC2B = `
UPDATE c2b_payments SET status = 'matched', object_type = $7, object_id = $2, attempt_id = $3, booked_at = $4, disputed = disputed OR amount <> $5, updated_at = $4,
    party_hash = CASE party_hash WHEN '' THEN $6 ELSE party_hash END
WHERE receipt = $1 AND exception_id IS NULL AND status = 'unmatched'`

// claim assigns the payment to the object that it is booked for. CodeConflict when it was set aside before.
func (ar *arrival) claim(ctx context.Context) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	paid := ar.obs.At
	if paid.IsZero() {
		paid = ar.now
	}
	a := ar.out.Attempt
	if _, err := ar.t.Exec(ctx, insertC2B, id, ar.obs.Receipt, ar.money.Asset(), ar.money.Decimal(), a.Reference, partyOf(ar.obs), paid, ar.now); err != nil {
		return err
	}
	n, err := ar.t.Exec(ctx, claimC2B, ar.obs.Receipt, a.Object.ID, a.ID, ar.now, ar.money.Decimal(), partyOf(ar.obs), a.Object.Type)
	if err == nil && n == 0 {
		err = exchange.Errorf(exchange.CodeConflict, "Nothing waits for the payment. It is a payment exception, which an officer settles.")
	}
	return err
}

const readC2BByReceipt = `SELECT ` + c2bColumns + ` FROM c2b_payments WHERE receipt = $1`

// An attempt that may still take money comes before one that failed; both may be paid late. One that succeeded is
// already paid.
const readWaitingAttempt = `SELECT ` + attemptColumns + ` FROM payment_attempts
WHERE direction = 'collection' AND reference = $1 AND reference <> '' AND status <> 'succeeded'
ORDER BY status IN ('created', 'unknown', 'accepted') DESC, created_at DESC, id DESC LIMIT 1`

const readAwaited = `SELECT EXISTS (SELECT FROM payment_attempts WHERE direction = 'collection' AND reference = $1 AND reference <> ''
    AND status IN ('created', 'unknown', 'accepted')) AS known, EXISTS (SELECT FROM payment_attempts WHERE direction = 'collection' AND reference = $1
    AND reference <> '' AND status IN ('created', 'unknown', 'accepted') AND amount = $2) AS fits`

// AwaitsPayment reports whether an attempt waits for a payment under a reference, and whether one waits for that
// amount.
func (s *Store) AwaitsPayment(ctx context.Context, reference string, amount money.Amount) (known, fits bool, err error) {
	var r struct{ Known, Fits bool }
	if err := s.db.Get(ctx, &r, readAwaited, typed(reference), amount.Decimal()); err != nil {
		return false, false, translate(err, "payment")
	}
	return r.Known, r.Fits, nil
}

// TakeReceipt stores the report of a notice or a statement line about a payment to our number, once per receipt
// whatever the order and number of reports, and finds the attempt that waits for it. It books nothing: the attempt's
// flow queries a second source. A channel that contradicts another marks the payment as disputed. CodeInvalid without
// a receipt and an amount in KES.
func (s *Store) TakeReceipt(ctx context.Context, o exchange.Observation) (exchange.C2BTaken, error) {
	created, err := s.saveReceipt(ctx, o)
	if err != nil && exchange.CodeOf(err) != exchange.CodeConflict {
		return exchange.C2BTaken{}, err
	}
	var p exchange.C2BPayment
	if err := s.db.Get(ctx, &p, readC2BByReceipt, o.Receipt); err != nil {
		return exchange.C2BTaken{}, translate(err, "payment")
	}
	taken := exchange.C2BTaken{Payment: p, New: created}
	if p.Status == exchange.C2BMatched || p.ExceptionID != uuid.Nil {
		return taken, nil
	}
	var rows []exchange.PaymentAttempt
	if err := s.db.All(ctx, &rows, readWaitingAttempt, p.Reference); err != nil || len(rows) == 0 {
		return taken, translate(err, "payment attempt")
	}
	taken.Waiting = rows[0]
	return taken, nil
}

const readC2B = `SELECT ` + c2bColumns + ` FROM c2b_payments WHERE id = $1`

// C2BPayment reads a payment to our number.
func (s *Store) C2BPayment(ctx context.Context, id uuid.UUID) (exchange.C2BPayment, error) {
	return readOne[exchange.C2BPayment](ctx, s.db, "payment", readC2B, id)
}

// C2BFilter narrows a list of payments to our number. Nil and zero fields do not filter.
type C2BFilter struct {
	Status             exchange.C2BStatus
	Receipt, Reference string
	PartyHash          string
	Object             exchange.MomoObject
	Least, Most        *money.Amount
	From, To           time.Time // of the payment, To exclusive
	Listed, Disputed   *bool
}

// ListC2B pages through the payments to our number, the newest first, with their number.
func (s *Store) ListC2B(ctx context.Context, f C2BFilter, p Page) ([]exchange.C2BPayment, int, error) {
	var w where
	w.eq("status", string(f.Status))
	w.eq("receipt", f.Receipt)
	w.eq("reference", typed(f.Reference))
	w.eq("party_hash", f.PartyHash)
	w.eq("object_type", string(f.Object.Type))
	w.id("object_id", f.Object.ID)
	w.between("paid_at", f.From, f.To)
	if f.Least != nil {
		w.add(`amount >= ?`, f.Least.Decimal())
	}
	if f.Most != nil {
		w.add(`amount <= ?`, f.Most.Decimal())
	}
	if f.Listed != nil {
		w.add(`(listed_at IS NOT NULL) = ?`, *f.Listed)
	}
	if f.Disputed != nil {
		w.add(`disputed = ?`, *f.Disputed)
	}
	var rows []exchange.C2BPayment
	total, err := s.page(ctx, &rows, list{columns: c2bColumns, from: "c2b_payments", where: w, order: "paid_at DESC, id DESC"}, p)
	if err != nil {
		return nil, 0, translate(err, "payment")
	}
	return rows, total, nil
}
