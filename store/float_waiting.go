package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The sales by mobile money that wait for float: of which the order says so, or whose last attempt the operator refused for
// want of it. What is too large for all of the float takes no place from others.
const readWaitingForFloat = `
SELECT p.id, p.amount FROM orders o JOIN order_payouts p ON p.id = o.id
WHERE o.status = 'processing' AND p.rail = 'momo' AND p.status IN ('pending', 'refused') AND NOT p.claimed
    AND (o.status_detail = $1 OR p.status = 'refused' AND p.refused_code = $2)
    AND p.amount <= $3 ORDER BY p.created_at, p.id LIMIT $4`

type waitingRow struct {
	ID     uuid.UUID
	Amount decimal.Decimal
}

// WaitingForFloat lists sales that wait for float, the oldest first and limit at most: as many as can be paid from the room
// together, with what the operator charges for them.
func (s *Store) WaitingForFloat(ctx context.Context, room money.Amount, limit int) ([]uuid.UUID, error) {
	if !room.Positive() {
		return nil, nil
	}
	var rows []waitingRow
	if err := s.readAll(ctx, &rows, readWaitingForFloat, exchange.WaitFloat, exchange.CodeFloatShort, room.Decimal(), limit); err != nil || len(rows) == 0 {
		return nil, translate(err, "sale")
	}
	terms, err := s.TermsAt(ctx, s.now())
	if err != nil {
		return nil, err
	}
	var fit []uuid.UUID
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
			fit = append(fit, r.ID)
		}
	}
	return fit, nil
}
