package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const provenOrderPayout = `SELECT ` + attemptColumns + ` FROM payment_attempts
WHERE object_type = 'order' AND object_id = $1 AND direction = 'payout' AND status = 'succeeded' ORDER BY settled_at LIMIT 1`

// KeepOrderPayout lets a payout stand that was proven after the order was given up: the payee keeps the shillings
// instead of the crypto. The vendor pays for them out of the order's reservation and is owed the crypto, the refund ends
// with the payout's receipt, and the exception for the double payment is settled. A repeated call returns the payout as it
// is.
//
// CodeStateConflict while no attempt is proven, when the crypto has left or may have, and when an officer has settled
// the exception in another way.
func (s *Store) KeepOrderPayout(ctx context.Context, orderID uuid.UUID, by exchange.Principal) (exchange.OrderPayout, error) {
	return change(ctx, s, "payout", orderID, func(ctx context.Context, t unitTx) (exchange.OrderPayout, exchange.Posting, error) {
		var none exchange.Posting
		o, before, err := t.lockedOrderPayout(ctx, orderID)
		if err != nil || before.Status == exchange.PayoutCompleted {
			return before, none, err
		}
		if before.Status != exchange.PayoutCancelled || o.Status != exchange.OrderFailed {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "The order has not failed, so there is no refund that its payout could replace.")
		}
		var rows []exchange.PaymentAttempt
		if err := t.All(ctx, &rows, provenOrderPayout, orderID); err != nil {
			return before, none, err
		}
		if len(rows) == 0 {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "No payout of the order is proven.")
		}
		a := rows[0]
		if err := t.settleDouble(ctx, a.Receipt, by); err != nil {
			return before, none, err
		}
		p := before
		p.Status, p.PaidBy, p.Receipt = exchange.PayoutCompleted, a.ID, a.Receipt
		if p, err = t.movePayout(ctx, o, before, p, by); err != nil {
			return before, none, err
		}
		if err := t.endCryptoRefund(ctx, o, a.Receipt, by); err != nil {
			return before, none, err
		}
		reserved := exchange.HoldOp{Verb: exchange.HoldCapture, Hold: exchange.Hold{ID: o.HoldID}}
		return p, exchange.Posting{Holds: []exchange.HoldOp{reserved}, Entries: []exchange.Entry{{
			Key: "order:" + orderID.String() + ":kept", Kind: "order_payout.kept", ObjectType: "order", ObjectID: orderID,
			Lines: exchange.Lines(
				exchange.Debit(exchange.Owned(exchange.AccFiatBalance, o.VendorID, money.KES), o.Price.Vendor),
				exchange.Credit(exchange.House(exchange.AccReceivable, money.KES), o.Price.Fiat),
				exchange.Debit(exchange.House(exchange.AccRounding, money.KES), o.Price.Rounding),
				exchange.Credit(exchange.House(exchange.AccFees, money.KES), o.Price.Fee),
			),
		}}}, nil
	})
}

// settleDouble closes the exception about a payment that the payee may keep. The entry that lets the payment stand
// settles its debt.
func (t unitTx) settleDouble(ctx context.Context, receipt string, by exchange.Principal) error {
	x, found, err := t.exceptionOf(ctx, receipt)
	if err != nil {
		return err
	}
	if !found {
		return exchange.Errorf(exchange.CodeInternal, "a payout proven late has no exception")
	}
	if x, err = t.lockedException(ctx, x.ID); err != nil {
		return err
	}
	if x.Status != exchange.ExcOpen {
		return exchange.Errorf(exchange.CodeStateConflict, "The exception about the payout is already %s.", x.Status)
	}
	_, err = t.moveException(ctx, x, exchange.ExcAccepted, "the payee keeps the payout instead of the refund", by)
	return err
}

const refundAwaitsAttestation = `SELECT EXISTS (SELECT FROM refunds r JOIN order_payouts p ON p.id = r.order_id
WHERE r.order_id = $1 AND r.exception_id IS NULL AND p.status = 'cancelled' AND r.status IN ('pending', 'processing', 'needs_review')
    AND NOT EXISTS (SELECT FROM chain_attempts c JOIN chain_payments q ON q.id = c.payment_id
        WHERE q.purpose = 'refund' AND q.object_id = r.id AND c.status IN ('signed', 'broadcast', 'included', 'replaced', 'succeeded')))`

// CryptoIsHere reports whether the crypto of a given-up order has not left yet, so that a payout proven late can still
// stand instead of the refund.
func (s *Store) CryptoIsHere(ctx context.Context, orderID uuid.UUID) (bool, error) {
	var here bool
	err := s.db.Get(ctx, &here, refundAwaitsAttestation, orderID)
	return here, translate(err, "refund")
}
