package store

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Possible faults of a payout: another payer than assumed, and a double payment.

const payerOfRefund = `
SELECT m.party_hash FROM refunds f JOIN momo_receipts m ON m.receipt = f.collection WHERE f.id = $1 AND NOT f.payee_confirmed AND m.party_hash <> ''
UNION SELECT c.party_hash FROM refunds f JOIN c2b_payments c ON c.receipt = f.collection WHERE f.id = $1 AND NOT f.payee_confirmed AND c.party_hash <> ''`

// doubtPayer parks a refund for an officer when the provider's notice or statement names another payer than the phone
// that would get the refund, and reports whether it did. A source without a payer raises no doubt.
func (t unitTx) doubtPayer(ctx context.Context, o exchange.Order, r exchange.Refund) (bool, error) {
	var payers []string
	if err := t.All(ctx, &payers, payerOfRefund, r.ID); err != nil {
		return false, err
	}
	expected := r.Phone.Hash()
	if !slices.ContainsFunc(payers, func(named string) bool { return named != expected }) {
		return false, nil
	}
	if r.Status == exchange.RefundNeedsReview {
		return true, nil // it is already waiting
	}
	if _, err := t.moveRefund(ctx, o, r, exchange.RefundNeedsReview, exchange.RefundPayerDiffers, "", uuid.Nil, flow); err != nil {
		return true, err
	}
	return true, t.announceOwed(ctx, exchange.ReleaseRefund, r.ID) // it does not go back to who paid
}

const confirmPayee = `
UPDATE refunds SET payee_confirmed = true, updated_at = $2, version = version + 1 WHERE id = $1 AND version = $3 RETURNING ` + refundColumns

// ConfirmPayee lets a refund that waits for an officer go to the phone that was prompted. A repeated call changes
// nothing, nor one about a refund that waited for two officers, who have decided; a refund that does not wait is CodeStateConflict, and so is a command that was written before it waited.
func (s *Store) ConfirmPayee(ctx context.Context, refundID uuid.UUID, written time.Time, by exchange.Principal) (exchange.Refund, error) {
	return change(ctx, s, "refund", refundID, func(ctx context.Context, t unitTx) (exchange.Refund, exchange.Posting, error) {
		var none exchange.Posting
		o, before, err := t.lockedRefund(ctx, refundID)
		if err != nil {
			return before, none, err
		}
		var confirmed bool
		if err := t.Get(ctx, &confirmed, readPayeeConfirmed, refundID); err != nil || confirmed {
			return before, none, err
		}
		if before.Status == exchange.RefundPending { // it waited for officers, not for its payee
			var decided bool
			if err := t.Get(ctx, &decided, decidedByTwo, refundID); err != nil || decided {
				return before, none, err
			}
		}
		if before.Status != exchange.RefundNeedsReview {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "The payee of a refund that is %s is not in question.", before.Status)
		}
		if !written.After(before.UpdatedAt) {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "Another officer requested the refund at the same time. Confirm its payee with a new command.")
		}
		var after exchange.Refund
		if err := t.Get(ctx, &after, confirmPayee, refundID, t.s.now(), before.Version); err != nil {
			return before, none, err
		}
		if err := t.announceOwed(ctx, exchange.ReleaseRefund, refundID); err != nil {
			return before, none, err
		}
		return after, none, t.record(ctx, auditEvent{
			by: by, object: "refund", id: refundID, name: "refund.payee_confirmed", owner: o.CustomerID, vendor: o.VendorID,
			before: refundSnapshot(before, before.Detail), after: refundSnapshot(after, after.Detail),
		})
	})
}

const decidedByTwo = `SELECT EXISTS (SELECT FROM control_changes WHERE kind = 'refund_decision' AND change ->> 'object_id' = $1::text AND status = 'confirmed')`

const readPayeeConfirmed = `SELECT payee_confirmed FROM refunds WHERE id = $1`

const readPaidTwice = `SELECT ` + exceptionColumns + ` FROM payment_exceptions WHERE attempt_id = $1 AND kind = 'paid_twice' ORDER BY created_at DESC LIMIT 1`

// PaidTwiceBy finds the exception about a payout that was made beside another payment of its object, the newest where
// the payout itself was made more than once.
func (s *Store) PaidTwiceBy(ctx context.Context, attempt uuid.UUID) (exchange.PaymentException, bool, error) {
	var rows []exchange.PaymentException
	if err := s.db.All(ctx, &rows, readPaidTwice, attempt); err != nil || len(rows) == 0 {
		return exchange.PaymentException{}, false, translate(err, "payment exception")
	}
	return rows[0], true, nil
}

const readPayouts = `SELECT ` + attemptColumns + ` FROM payment_attempts
WHERE (object_type, object_id) IN (SELECT 'order', $1::uuid UNION ALL SELECT 'refund', r.id FROM refunds r WHERE r.order_id = $1) AND direction = 'payout'
ORDER BY created_at DESC LIMIT 100`

// Payouts lists the payouts of an order and its refunds, newest first, at most a hundred.
func (s *Store) Payouts(ctx context.Context, orderID uuid.UUID) ([]exchange.PaymentAttempt, error) {
	var rows []exchange.PaymentAttempt
	if err := s.db.All(ctx, &rows, readPayouts, orderID); err != nil {
		return nil, translate(err, "payment attempt")
	}
	return rows, nil
}

const readPayoutsOf = `SELECT ` + attemptColumns + ` FROM payment_attempts
WHERE object_id = $1 AND object_type = $2 AND direction = 'payout' ORDER BY created_at DESC LIMIT 100`

// PayoutsOf lists the payouts of one object, newest first, at most a hundred.
func (s *Store) PayoutsOf(ctx context.Context, of exchange.MomoObject) ([]exchange.PaymentAttempt, error) {
	var rows []exchange.PaymentAttempt
	if err := s.db.All(ctx, &rows, readPayoutsOf, of.ID, of.Type); err != nil {
		return nil, translate(err, "payment attempt")
	}
	return rows, nil
}
