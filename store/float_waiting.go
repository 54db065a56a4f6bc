package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Who waits for float: sales by mobile money of which the order says so, or whose last attempt the operator refused for want
// of it, and refunds of which no attempt could begin yet. What is too large for all of the float takes no place from others.
const readWaitingForFloat = `
SELECT * FROM (
    SELECT p.id AS order_id, NULL::uuid AS refund_id, NULL::uuid AS attempt_id, p.amount, p.created_at
    FROM orders o JOIN order_payouts p ON p.id = o.id
    WHERE o.status = 'processing' AND p.rail = 'momo' AND p.status IN ('pending', 'refused') AND NOT p.claimed
        AND (o.status_detail = $1 OR p.status = 'refused' AND p.refused_code = $2)
    UNION ALL
    SELECT order_id, id, attempt_id, amount, created_at FROM refunds WHERE rail = 'momo' AND status = 'pending'
) w WHERE amount <= $3 ORDER BY created_at, order_id LIMIT $4`

type waitingRow struct {
	OrderID   uuid.UUID     `db:"order_id"`
	RefundID  uuid.NullUUID `db:"refund_id"`
	AttemptID uuid.NullUUID `db:"attempt_id"`
	Amount    decimal.Decimal
	CreatedAt time.Time `db:"created_at"`
}

// WaitingForFloat lists sales and refunds that wait for float, the oldest first and limit at most: as many as can be paid from
// the room together, with what the operator charges for them.
func (s *Store) WaitingForFloat(ctx context.Context, room money.Amount, limit int) ([]exchange.FloatWaiter, error) {
	if !room.Positive() {
		return nil, nil
	}
	var rows []waitingRow
	if err := s.readAll(ctx, &rows, readWaitingForFloat, exchange.WaitFloat, exchange.CodeFloatShort, room.Decimal(), limit); err != nil || len(rows) == 0 {
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
			continue // above what the operator takes now: no payout of it can begin
		}
		if need := amount.Add(charge); need.Cmp(room) <= 0 {
			room = room.Sub(need)
			fit = append(fit, exchange.FloatWaiter{OrderID: r.OrderID, RefundID: r.RefundID.UUID, AttemptID: r.AttemptID.UUID})
		}
	}
	return fit, nil
}
