package store

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

var readOrdersByID = `SELECT ` + orderColumns + ` FROM orders o WHERE o.id = ANY ($1::uuid[])`

// BankPayouts pages through the orders that are paid out by bank, oldest first, with their number. An empty status
// lists all of them.
func (s *Store) BankPayouts(ctx context.Context, status exchange.PayoutStatus, p Page) ([]exchange.BankPayout, int, error) {
	var w where
	w.add(`p.rail = 'bank'`)
	w.eq("p.status", string(status))
	var rows []exchange.OrderPayout
	total, err := s.page(ctx, &rows, list{columns: orderPayoutColumns, from: "order_payouts p", where: w, order: "p.created_at, p.id"}, p)
	if err != nil {
		return nil, 0, translate(err, "payment by bank")
	}
	all, err := s.bankPayouts(ctx, rows)
	return all, total, err
}

// BankPayout reads what an order pays out by bank.
func (s *Store) BankPayout(ctx context.Context, orderID uuid.UUID) (exchange.BankPayout, error) {
	var r exchange.OrderPayout
	if err := s.db.Get(ctx, &r, readOrderPayout+` AND p.rail = 'bank'`, orderID); err != nil {
		return exchange.BankPayout{}, translate(err, "payment by bank")
	}
	all, err := s.bankPayouts(ctx, []exchange.OrderPayout{r})
	if err != nil {
		return exchange.BankPayout{}, err
	}
	return all[0], nil
}

const secondNeeded = `SELECT r.object_id FROM releases r WHERE r.purpose = 'payout' AND r.object_id = ANY ($1::uuid[]) AND r.ended_at IS NULL
    AND CASE WHEN r.passed_at IS NULL THEN release_officers(r, clock_timestamp()) ELSE r.officers END > 1`

const readReservedAt = `
SELECT p.id AS order_id, a.owner_id AS bank_id FROM order_payouts p JOIN holds h ON h.id = p.hold_id JOIN ledger_accounts a ON a.id = h.account_id AND a.kind = 'bank'
WHERE p.id = ANY ($1::uuid[])`

// reservedAt says at which account of the house the money of an order's payout is reserved, or was.
type reservedAt struct{ OrderID, BankID uuid.UUID }

// bankPayouts joins payouts with their orders and with the officers' confirmations.
func (s *Store) bankPayouts(ctx context.Context, rows []exchange.OrderPayout) ([]exchange.BankPayout, error) {
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.OrderID
	}
	var orders []exchange.Order
	if err := s.db.All(ctx, &orders, readOrdersByID, pq.Array(ids)); err != nil {
		return nil, translate(err, "order")
	}
	var said []exchange.BankConfirmation
	if err := s.db.All(ctx, &said, readConfirmations, pq.Array(ids)); err != nil {
		return nil, translate(err, "confirmation")
	}
	var second []uuid.UUID
	if err := s.db.All(ctx, &second, secondNeeded, pq.Array(ids)); err != nil {
		return nil, translate(err, "payment by bank")
	}
	var reserved []reservedAt
	if err := s.db.All(ctx, &reserved, readReservedAt, pq.Array(ids)); err != nil {
		return nil, translate(err, "payment by bank")
	}
	banks := map[uuid.UUID]uuid.UUID{}
	for _, r := range reserved {
		banks[r.OrderID] = r.BankID
	}
	byID := map[uuid.UUID]exchange.Order{}
	for _, o := range orders {
		byID[o.ID] = o
	}
	all := make([]exchange.BankPayout, len(rows))
	for i, r := range rows {
		all[i] = bankPayout(r, byID[r.OrderID], said)
		all[i].SecondNeeded, all[i].BankID = slices.Contains(second, r.OrderID), banks[r.OrderID]
	}
	return all, nil
}

func bankPayout(r exchange.OrderPayout, of exchange.Order, said []exchange.BankConfirmation) exchange.BankPayout {
	b := exchange.BankPayout{OrderPayout: r, Order: of}
	for _, c := range said {
		if c.OrderID == r.OrderID {
			b.Confirmations = append(b.Confirmations, c)
		}
	}
	return b
}
