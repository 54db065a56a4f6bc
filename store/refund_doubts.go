package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// What can be wrong about a refund that looks right: that its payer is somebody else, and that it was
// paid twice.

const payerOfRefund = `
SELECT m.party_hash FROM refunds f JOIN momo_receipts m ON m.receipt = f.collection WHERE f.id = $1 AND NOT f.payee_confirmed AND m.party_hash <> ''`

// doubtPayer hands a refund to a person when the operator's notice or statement names another payer
// than the phone that the refund would go to, and reports whether it did. A witness that does not tell
// the payer raises no doubt.
func (t unitTx) doubtPayer(ctx context.Context, o exchange.Order, r exchange.Refund) (bool, error) {
	var payers []string
	if err := t.all(ctx, &payers, payerOfRefund, r.ID); err != nil {
		return false, err
	}
	if len(payers) == 0 || payers[0] == r.Phone.Hash() {
		return false, nil
	}
	if r.Status == exchange.RefundNeedsReview {
		return true, nil // it waits already
	}
	_, err := t.moveRefund(ctx, o, r, exchange.RefundNeedsReview, exchange.RefundPayerDiffers, "", uuid.Nil, flow)
	return true, err
}

const confirmPayee = `
UPDATE refunds SET payee_confirmed = true, updated_at = $2, version = version + 1 WHERE id = $1 AND version = $3 RETURNING ` + refundColumns

// ConfirmPayee lets a refund that waits for a person go to the phone that was prompted. Called again it
// changes nothing; a refund that does not wait is CodeStateConflict.
func (s *Store) ConfirmPayee(ctx context.Context, refundID uuid.UUID, by exchange.Principal) (exchange.Refund, error) {
	return change(ctx, s, "refund", refundID, func(ctx context.Context, t unitTx) (exchange.Refund, exchange.Posting, error) {
		var none exchange.Posting
		o, before, _, err := t.lockedRefund(ctx, refundID)
		if err != nil {
			return before, none, err
		}
		var confirmed bool
		if err := t.get(ctx, &confirmed, readPayeeConfirmed, refundID); err != nil || confirmed {
			return before, none, err
		}
		if before.Status != exchange.RefundNeedsReview {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "The payee of a refund that is %s is not in question.", before.Status)
		}
		var r refundRow
		if err := t.get(ctx, &r, confirmPayee, refundID, t.s.now(), before.Version); err != nil {
			return before, none, err
		}
		after, err := r.refund()
		if err != nil {
			return before, none, err
		}
		return after, none, t.record(ctx, fact{
			by: by, object: "refund", id: refundID, name: "refund.payee_confirmed", owner: o.CustomerID, vendor: o.VendorID,
			before: refundFact(before, before.Detail), after: refundFact(after, after.Detail),
		})
	})
}

const readPayeeConfirmed = `SELECT payee_confirmed FROM refunds WHERE id = $1`

// paidTwice books a payment of a refund that another payment had completed. The money is gone, so the
// books say so whatever else is wrong: the payee owes it, and a person decides.
func (t unitTx) paidTwice(ctx context.Context, o exchange.Order, r exchange.Refund, attemptID uuid.UUID, receipt string) (exchange.Posting, error) {
	if receipt == r.Receipt {
		return exchange.Posting{}, nil // the payment that a person named before it was proven
	}
	if _, known, err := t.exceptionOf(ctx, receipt); err != nil || known {
		return exchange.Posting{}, err
	}
	holds, err := t.captureFloat(ctx, attemptID)
	if err != nil {
		return exchange.Posting{}, err
	}
	x, err := t.openException(ctx, o, exchange.PaymentException{
		Kind: exchange.ExcPaidTwice, OrderID: r.OrderID, AttemptID: attemptID, Receipt: receipt, Amount: r.Amount,
	})
	return exchange.Posting{Holds: holds, Entries: []exchange.Entry{{
		Key: "refund:" + r.ID.String() + ":again:" + receipt, Kind: "refund.paid_twice", ObjectType: "payment_exception", ObjectID: x.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccReceivable, r.Amount.Asset()), r.Amount),
			exchange.Credit(exchange.House(exchange.AccMomoPayout, r.Amount.Asset()), r.Amount),
		},
	}}}, err
}

const readPaidTwice = `SELECT ` + exceptionColumns + ` FROM payment_exceptions WHERE attempt_id = $1 AND kind = 'paid_twice' ORDER BY created_at DESC LIMIT 1`

// PaidTwiceBy finds the exception about a payout that was made beside another payment of its refund, the newest
// where the payout itself was made more than once.
func (s *Store) PaidTwiceBy(ctx context.Context, attempt uuid.UUID) (exchange.PaymentException, bool, error) {
	var rows []exceptionRow
	if err := s.readAll(ctx, &rows, readPaidTwice, attempt); err != nil || len(rows) == 0 {
		return exchange.PaymentException{}, false, translate(err, "payment exception")
	}
	x, err := rows[0].exception()
	return x, err == nil, err
}

const readPayouts = `SELECT ` + attemptColumns + ` FROM payment_attempts WHERE order_id = $1 AND direction = 'payout' ORDER BY created_at DESC LIMIT 100`

// Payouts lists the payouts of an order's refunds, the newest first, at most a hundred.
func (s *Store) Payouts(ctx context.Context, orderID uuid.UUID) ([]exchange.PaymentAttempt, error) {
	var rows []attemptRow
	if err := s.readAll(ctx, &rows, readPayouts, orderID); err != nil {
		return nil, translate(err, "payment attempt")
	}
	return convert(rows, attemptRow.attempt)
}
