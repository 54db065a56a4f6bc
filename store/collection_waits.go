package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const readCollections = `SELECT ` + attemptColumns + ` FROM payment_attempts
WHERE object_type = $1 AND object_id = $2 AND direction = 'collection' ORDER BY created_at, id`

// Collections reads every prompt that was made for an object, oldest first.
func (s *Store) Collections(ctx context.Context, of exchange.MomoObject) ([]exchange.PaymentAttempt, error) {
	all := []exchange.PaymentAttempt{}
	err := s.db.All(ctx, &all, readCollections, of.Type, of.ID)
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
