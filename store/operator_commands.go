package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const commandColumns = `id, object_type, object_id, verb, note, actor_id, created_at, used_at`

const insertCommand = `
INSERT INTO operator_commands (id, object_type, object_id, verb, note, actor_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (id) DO NOTHING`

// SaveCommand stores an operator's decision about a parked flow. A second call with the same id changes nothing.
func (s *Store) SaveCommand(ctx context.Context, c exchange.OperatorCommand, by exchange.Principal) error {
	return s.inTx(ctx, "command", func(t unitTx) error {
		n, err := t.Exec(ctx, insertCommand, c.ID, c.ObjectType, c.ObjectID, c.Verb, c.Note, c.ActorID, t.s.now())
		if err != nil || n == 0 {
			return err
		}
		return t.audit(ctx, by, c.ObjectType+"."+c.Verb, c.ObjectType, c.ObjectID, nil, map[string]any{"command_id": c.ID, "note": c.Note})
	})
}

// CommandLife is how long a decision waits to be used. It was made about the flow's state at that time, so it expires.
const CommandLife = time.Hour

const useCommand = `UPDATE operator_commands SET used_at = coalesce(used_at, $4)
WHERE id = $1 AND object_type = $2 AND object_id = $3 AND (used_at IS NOT NULL OR created_at > $5) RETURNING ` + commandColumns

const staleCommand = `SELECT EXISTS (SELECT FROM operator_commands WHERE id = $1 AND object_type = $2 AND object_id = $3)`

// UseCommand proves a decision about an object and marks it used. A second use returns the same row with the time of
// the first, so that a retried activity finds it; the flow decides whether an old command still applies. CodeNotFound
// when there is no such command for exactly this object, CodeExpired when it was not used within CommandLife.
func (s *Store) UseCommand(ctx context.Context, id uuid.UUID, objectType string, objectID uuid.UUID) (exchange.OperatorCommand, error) {
	var used exchange.OperatorCommand
	err := s.inTx(ctx, "command", func(t unitTx) error {
		now := t.s.now()
		err := t.Get(ctx, &used, useCommand, id, objectType, objectID, now, now.Add(-CommandLife))
		if errors.Is(err, sql.ErrNoRows) {
			var stale bool
			if err := t.Get(ctx, &stale, staleCommand, id, objectType, objectID); err != nil {
				return err
			}
			if stale {
				return exchange.Errorf(exchange.CodeExpired, "The command is more than %s old and was never used. Send it again.", CommandLife)
			}
		}
		if err != nil {
			return err
		}
		return nil
	})
	return used, err
}
