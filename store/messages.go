package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const insertMessage = `
INSERT INTO messages (id, user_id, kind, channel, once, sealed, created_at, expires_at, next_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $7)
ON CONFLICT (once) DO NOTHING`

func (t unitTx) addMessages(ctx context.Context, all []exchange.Message) error {
	for _, m := range all {
		if _, err := t.Exec(ctx, insertMessage, m.ID, nullID(m.UserID), m.Kind, m.Channel, m.Once, m.Sealed, t.s.now(), m.ExpiresAt); err != nil {
			return err
		}
	}
	return nil
}

// AddMessages stores messages that are to be sent. One whose Once was used before is left out.
func (s *Store) AddMessages(ctx context.Context, all ...exchange.Message) error {
	return s.inTx(ctx, "message", func(t unitTx) error { return t.addMessages(ctx, all) })
}

// The pauses between the attempts to send a message. A claim is a lease of the first pause: a process that dies while it
// sends leaves the message to another, and it may then be sent twice.
const (
	messagePause    = 30 * time.Second
	maxMessagePause = time.Hour
)

const claimMessages = `
UPDATE messages SET attempts = attempts + 1, next_at = $1::timestamptz + make_interval(secs => least($2 * 2 ^ least(attempts, 20), $3))
WHERE id IN (SELECT id FROM messages WHERE status = 'waiting' AND next_at <= $1 ORDER BY next_at LIMIT $4 FOR UPDATE SKIP LOCKED)
RETURNING id, user_id, kind, channel, once, sealed, attempts, created_at, expires_at`

// ClaimMessages returns messages that are due, at most limit, to one caller. Each comes again after a growing pause until
// EndMessage.
func (s *Store) ClaimMessages(ctx context.Context, limit int) ([]exchange.Message, error) {
	return readAll[exchange.Message](ctx, s.db, "message", claimMessages, s.now(), messagePause.Seconds(), maxMessagePause.Seconds(), limit)
}

const endMessage = `UPDATE messages SET status = $2, sealed = '', ended_at = $3 WHERE id = $1 AND status = 'waiting'`

// EndMessage ends a message that was sent, or given up. Its text is gone.
func (s *Store) EndMessage(ctx context.Context, id uuid.UUID, sent bool) error {
	status := "failed"
	if sent {
		status = "sent"
	}
	_, err := s.write(ctx, "message", endMessage, id, status, s.now())
	return err
}
