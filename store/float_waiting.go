package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// What waits for float: mobile money sales that are marked so or whose last attempt the provider refused for lack of
// float, refunds without an attempt, and withdrawals that are marked so. A payout larger than all of the float does not block others.
const readWaitingForFloat = `
SELECT * FROM (
    SELECT p.id AS order_id, NULL::uuid AS refund_id, NULL::uuid AS attempt_id, NULL::uuid AS withdrawal_id, p.amount, p.created_at
    FROM orders o JOIN order_payouts p ON p.id = o.id
    WHERE o.status = 'processing' AND p.rail = 'momo' AND p.status IN ('pending', 'refused') AND NOT p.claimed
        AND (o.status_detail = $1 OR p.status = 'refused' AND $2 = (
            SELECT a.result_class FROM payment_attempts a WHERE a.object_type = 'order' AND a.object_id = p.id AND a.direction = 'payout'
            ORDER BY a.created_at DESC, a.id DESC LIMIT 1))
    UNION ALL
    SELECT order_id, id, attempt_id, NULL, amount, created_at FROM refunds WHERE rail = 'momo' AND status = 'pending'
    UNION ALL
    SELECT NULL, NULL, NULL, id, payout_amount, created_at FROM otc_withdrawals
    WHERE method = 'momo' AND status IN ('executing', 'needs_review') AND status_detail = $1 AND NOT claimed
) w WHERE amount <= $3 ORDER BY created_at, coalesce(order_id, withdrawal_id) LIMIT $4`

type waitingRow struct {
	OrderID      uuid.NullUUID
	RefundID     uuid.NullUUID
	AttemptID    uuid.NullUUID
	WithdrawalID uuid.NullUUID
	Amount       decimal.Decimal
	CreatedAt    time.Time
}

// WaitingForFloat lists sales, refunds and withdrawals that wait for float, oldest first and limit at most: as many as the room can
// pay together, with the provider's charges.
func (s *Store) WaitingForFloat(ctx context.Context, room money.Amount, limit int) ([]exchange.FloatWaiter, error) {
	if !room.Positive() {
		return nil, nil
	}
	var rows []waitingRow
	if err := s.db.All(ctx, &rows, readWaitingForFloat, exchange.WaitFloat, exchange.ClassFloat, room.Decimal(), limit); err != nil || len(rows) == 0 {
		return nil, translate(err, "sale or refund")
	}
	terms, err := s.TermsAt(ctx, s.now())
	if err != nil {
		return nil, err
	}
	var fit []exchange.FloatWaiter
	for _, r := range rows {
		amount, err := amountOf(money.KES, r.Amount)
		if err != nil {
			return nil, err
		}
		charge, err := terms.Charge(amount)
		if err != nil {
			continue // above the provider's limit: no payout can begin
		}
		if need := amount.Add(charge); need.Cmp(room) <= 0 {
			room = room.Sub(need)
			fit = append(fit, exchange.FloatWaiter{OrderID: r.OrderID.UUID, RefundID: r.RefundID.UUID, AttemptID: r.AttemptID.UUID, WithdrawalID: r.WithdrawalID.UUID})
		}
	}
	return fit, nil
}
