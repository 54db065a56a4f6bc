package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const readCollections = `SELECT ` + attemptColumns + ` FROM payment_attempts
WHERE order_id = $1 AND direction = 'collection' ORDER BY created_at, id`

// Collections reads every prompt that was made for an order, oldest first.
func (s *Store) Collections(ctx context.Context, orderID uuid.UUID) ([]exchange.PaymentAttempt, error) {
	all := []exchange.PaymentAttempt{}
	err := s.db.All(ctx, &all, readCollections, orderID)
	return all, translate(err, "payment attempts")
}

const readCommandUsed = `SELECT used_at IS NOT NULL FROM operator_commands WHERE id = $1`

// CommandUsed reports whether a flow has used a decision. CodeNotFound when there is none with the id.
func (s *Store) CommandUsed(ctx context.Context, id uuid.UUID) (bool, error) {
	var used bool
	if err := s.db.Get(ctx, &used, readCommandUsed, id); err != nil {
		return false, translate(err, "command")
	}
	return used, nil
}
