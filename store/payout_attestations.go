package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Attestations by officers about a mobile money payout with too little evidence from the provider. One officer
// proposes an attestation and another confirms it, as a kind of control change; it is stored in the transaction of the
// confirmation, and the waiting flow acts on its row.

// attestationTerms is a proposed attestation as officers and the database's guard read it.
type attestationTerms struct {
	ObjectType exchange.MomoObjectType `json:"object_type"`
	ObjectID   uuid.UUID               `json:"object_id"`
	OrderID    *uuid.UUID              `json:"order_id"` // nil for a withdrawal
	RefundID   *uuid.UUID              `json:"refund_id"`
	AttemptID  *uuid.UUID              `json:"attempt_id"`
	Receipt    string                  `json:"receipt"`
	Note       string                  `json:"note"`
}

// payoutTerms is the payout that the attestation is about.
type payoutTerms struct {
	OrderID  *uuid.UUID `json:"order_id"`
	Amount   string     `json:"amount"`
	Currency string     `json:"currency"`
	Payee    string     `json:"payee"` // masked: enough to compare it with the operator's statement
	Status   string     `json:"status"`
}

// openUnknown is the oldest attempt with an unknown outcome of payouts that are under way, of an order and its refunds, of a refund or of a
// withdrawal, whether it is old enough to be declared unpaid, and the required age in minutes.
const openUnknown = `
SELECT a.id, a.object_type AS "object.type", a.object_id AS "object.id", a.created_at + make_interval(secs => y.unknown_seconds) <= clock_timestamp() AS old, y.unknown_seconds / 60 AS minutes
FROM (SELECT 'order' AS type, p.id FROM order_payouts p WHERE p.id = $1 AND p.status IN ('processing', 'confirming')
    UNION ALL SELECT 'refund', f.id FROM refunds f WHERE f.order_id = $1 AND f.status IN ('processing', 'confirming')
    UNION ALL SELECT 'refund', f.id FROM refunds f WHERE f.id = $1 AND f.status IN ('processing', 'confirming')
    UNION ALL SELECT 'otc_withdrawal', w.id FROM otc_withdrawals w WHERE w.id = $1 AND w.status IN ('processing', 'confirming')) o
JOIN payment_attempts a ON a.object_id = o.id AND a.object_type = o.type AND a.direction = 'payout' AND a.status IN ('unknown', 'accepted') CROSS JOIN refund_policy y
ORDER BY a.created_at, a.id LIMIT 1`

// claimedRefused is the newest refused attempt of an order's refund by mobile money, or of a withdrawal, with a claim that it was paid.
const claimedRefused = `
SELECT a.id, a.object_type AS "object.type", a.object_id AS "object.id", a.created_at + make_interval(secs => y.unknown_seconds) <= clock_timestamp() AS old, y.unknown_seconds / 60 AS minutes
FROM (SELECT 'refund' AS type, f.id, f.created_at FROM refunds f WHERE f.order_id = $1 AND f.claimed
    UNION ALL SELECT 'otc_withdrawal', w.id, w.created_at FROM otc_withdrawals w WHERE w.id = $1 AND w.claimed) o
JOIN payment_attempts a ON a.object_id = o.id AND a.object_type = o.type AND a.direction = 'payout' AND a.status IN ('refused', 'failed') CROSS JOIN refund_policy y
ORDER BY o.created_at, a.object_id, a.created_at DESC, a.id DESC LIMIT 1`

// ProposeUnpaid proposes to declare a payout of an order, of a refund of it or of a withdrawal unpaid whose outcome is unknown, or all
// refused payouts of a refund or a withdrawal with a claim that it was paid. It takes effect when a second officer confirms it.
// CodeStateConflict while there is no such payout, or not for long enough, and when there is a claim that the unknown payout
// was made.
func (s *Store) ProposeUnpaid(ctx context.Context, of exchange.MomoObject, note string, by exchange.Principal) (exchange.ControlChange, error) {
	return s.proposeAttestation(ctx, "", note, by, func(t unitTx) (payoutObject, uuid.UUID, error) {
		return t.undecided(ctx, of)
	})
}

// ProposeReceipt proposes to attest a payout with its receipt. It takes effect when a second officer confirms it.
func (s *Store) ProposeReceipt(ctx context.Context, of exchange.MomoObject, receipt string, by exchange.Principal) (exchange.ControlChange, error) {
	return s.proposeAttestation(ctx, receipt, receipt, by, func(t unitTx) (payoutObject, uuid.UUID, error) {
		x, err := t.lockedPayoutObject(ctx, of)
		return x, uuid.Nil, err
	})
}

func (s *Store) proposeAttestation(
	ctx context.Context, receipt, note string, by exchange.Principal, about func(unitTx) (payoutObject, uuid.UUID, error),
) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	if err := require(note != "" && len([]rune(note)) <= exchange.MaxPayoutNote, "/note", "required", "must say how this was found out, in at most 500 characters"); err != nil {
		return proposed, err
	}
	err := s.inTx(ctx, "payout", func(t unitTx) error {
		x, attempt, err := about(t)
		if err != nil {
			return err
		}
		p := x.owes()
		was := payoutTerms{OrderID: pointerTo(p.OrderID), Amount: p.Amount.String(), Currency: string(p.Amount.Asset()), Payee: p.Phone.String(), Status: p.Status}
		terms := attestationTerms{
			ObjectType: p.Object.Type, ObjectID: p.Object.ID, OrderID: pointerTo(p.OrderID), RefundID: pointerTo(p.Object.RefundID()), AttemptID: pointerTo(attempt), Receipt: receipt, Note: note,
		}
		proposed, err = t.propose(ctx, exchange.ControlPayoutAttestation, uuid.Nil, was, terms, by)
		return err
	})
	return proposed, err
}

// undecidedRow is an attempt that may be declared unpaid.
type undecidedRow struct {
	ID      uuid.UUID
	Object  exchange.MomoObject
	Old     bool
	Minutes int
}

// undecided is the payout of an order, of a refund of it or of a withdrawal, that may be declared unpaid, and its attempt.
func (t unitTx) undecided(ctx context.Context, of exchange.MomoObject) (payoutObject, uuid.UUID, error) {
	if of.Type == exchange.MomoOrder { // one that buys crypto owes nothing, and its refunds do
		if _, err := t.lockedOrder(ctx, of.ID); err != nil {
			return nil, uuid.Nil, err
		}
	} else if _, err := t.lockedPayoutObject(ctx, of); err != nil {
		return nil, uuid.Nil, err
	}
	var rows []undecidedRow
	if err := t.All(ctx, &rows, claimedRefused, of.ID); err != nil {
		return nil, uuid.Nil, err
	}
	claimed := len(rows) > 0
	if !claimed {
		if err := t.All(ctx, &rows, openUnknown, of.ID); err != nil {
			return nil, uuid.Nil, err
		}
	}
	if len(rows) == 0 {
		return nil, uuid.Nil, exchange.Errorf(exchange.CodeStateConflict, "There is no payout with an unknown outcome.")
	}
	x, err := t.lockedPayoutObject(ctx, rows[0].Object)
	switch {
	case err != nil:
	case x.owes().Claimed && !claimed:
		err = exchange.Errorf(exchange.CodeStateConflict, "There is evidence that the payout was made.")
	case !rows[0].Old:
		err = exchange.Errorf(exchange.CodeStateConflict,
			"The provider may still report the outcome. The payout can be declared unpaid when it is %d minutes old.", rows[0].Minutes)
	}
	return x, rows[0].ID, err
}

const insertAttestation = `
INSERT INTO payout_attestations (id, object_type, object_id, attempt_id, receipt, note, attested_by, agreed_by, said_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

// applyAttestation stores a confirmed attestation. The flow of the payout acts on it. CodeStateConflict when the
// outcome has changed.
func (t unitTx) applyAttestation(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	var terms attestationTerms
	if err := json.Unmarshal(c.Change, &terms); err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "a stored payout attestation can't be read")
	}
	// A try that begins at the same moment comes before the attestation, or finds it.
	if _, err := t.lockedPayoutObject(ctx, exchange.MomoObject{Type: terms.ObjectType, ID: terms.ObjectID}); err != nil {
		return err
	}
	if terms.AttemptID != nil {
		of := exchange.MomoObject{Type: terms.ObjectType, ID: terms.ObjectID}
		if terms.OrderID != nil {
			of = exchange.OrderObject(*terms.OrderID)
		}
		_, attempt, err := t.undecided(ctx, of)
		if err != nil {
			return err
		}
		if attempt != *terms.AttemptID {
			return exchange.Errorf(exchange.CodeStateConflict, "Another payout is under way now. Check that one.")
		}
	}
	_, err := t.Exec(ctx, insertAttestation, c.ID, terms.ObjectType, terms.ObjectID, terms.AttemptID, terms.Receipt, terms.Note, c.ProposedBy, by.UserID, t.s.now())
	return err
}

const declaredUnpaid = `SELECT EXISTS (SELECT FROM payout_attestations WHERE attempt_id = $1)`

// DeclaredUnpaid reports whether two officers declared that a payout attempt was not made.
func (s *Store) DeclaredUnpaid(ctx context.Context, attemptID uuid.UUID) (bool, error) {
	var declared bool
	err := s.db.Get(ctx, &declared, declaredUnpaid, attemptID)
	return declared, translate(err, "payout")
}

const claimDeclined = `
SELECT max(w.said_at) FROM payment_attempts a
JOIN payment_attempts n ON n.object_type IN ('refund', 'otc_withdrawal') AND (n.object_type, n.object_id) = (a.object_type, a.object_id) AND n.created_at >= a.created_at
JOIN payout_attestations w ON w.attempt_id = n.id AND w.said_at >= n.settled_at WHERE a.id = $1`

// ClaimDeclined returns when two officers last declared that the refused payouts of a refund or a withdrawal were not made, among them the
// attempt; zero if they never did. Reports from before that don't count as claims any more.
func (s *Store) ClaimDeclined(ctx context.Context, attemptID uuid.UUID) (time.Time, error) {
	var at sql.NullTime
	err := s.db.Get(ctx, &at, claimDeclined, attemptID)
	return at.Time, translate(err, "payout")
}

// Faults of a receipt, as receipt_fault returns them.
const (
	faultCollection = "collection"
	faultAttested   = "attested"
	faultBooked     = "booked"
)

// ReceiptNeedsSecond reports whether one officer's attestation of a payout's receipt is not enough: above the value
// from which a bank payout needs two officers, together with the payments of it that are booked. The database refuses to settle the payout then. CodeInvalid for the receipt
// of a payment to us, and CodeConflict for one of another payment, booked or attested by two officers.
func (s *Store) ReceiptNeedsSecond(ctx context.Context, of exchange.MomoObject, receipt string) (bool, error) {
	var row struct {
		Second bool
		Fault  string
	}
	if err := s.db.Get(ctx, &row, `SELECT receipt_needs_second($1, $2) AS second, receipt_fault($1, $2) AS fault`, of.ID, receipt); err != nil {
		return false, translate(err, "payout")
	}
	switch row.Fault {
	case faultCollection:
		return false, require(false, "/note", "receipt", "is the receipt of a payment to the house, which proves no payout")
	case faultAttested:
		return false, exchange.Errorf(exchange.CodeConflict, "Two officers attested this receipt for another payout.")
	case faultBooked:
		return false, exchange.Errorf(exchange.CodeConflict, "Another payment is booked with this receipt.")
	}
	return row.Second, nil
}

const refundsToSettle = `
SELECT f.id, f.status <> 'completed' AS open, EXISTS (SELECT FROM payout_attestations w WHERE w.object_type = 'refund' AND w.object_id = f.id AND w.receipt = $2) AS attested
FROM refunds f WHERE f.order_id = $1 AND f.rail = 'momo' ORDER BY f.exception_id IS NOT NULL, f.created_at, f.id`

// PayoutToSettle is the payout of an order that a receipt would settle: its own, the refund that is named, the one that
// two officers attested the receipt for, or its only open refund by mobile money. It is zero for an order that neither
// sells crypto nor has an open refund by mobile money. sure reports that the refund was named or attested; it may be
// completed, and the receipt then says that it was paid twice. CodeInvalid for a named refund that is not one of the
// order, and when none is sure and several are open.
func (s *Store) PayoutToSettle(ctx context.Context, o exchange.Order, receipt string, named uuid.UUID) (of exchange.MomoObject, sure bool, err error) {
	if o.OffRamp() {
		return exchange.OrderObject(o.ID), false, notPaidSo(named == uuid.Nil)
	}
	type refund struct {
		ID             uuid.UUID
		Open, Attested bool
	}
	var open []refund
	if err := s.db.All(ctx, &open, refundsToSettle, o.ID, receipt); err != nil {
		return of, false, translate(err, "refund")
	}
	for _, r := range open {
		if r.ID == named || (named == uuid.Nil && r.Attested) {
			return exchange.RefundObject(r.ID), true, nil
		}
	}
	open = slices.DeleteFunc(open, func(r refund) bool { return !r.Open })
	if named != uuid.Nil || len(open) == 0 {
		return of, false, notPaidSo(named == uuid.Nil)
	}
	return exchange.RefundObject(open[0].ID), false, require(len(open) == 1, "/refund_id", "required", "must name the refund: several of the order are open")
}

// notPaidSo returns the refusal of a named refund that is not paid by mobile money.
func notPaidSo(ok bool) error {
	return require(ok, "/refund_id", "not_found", "must be a refund of the order by mobile money")
}
