package store

import (
	"context"
	"time"

	"kivuko/exchange"
)

// How long expired rows are kept. Rows that moved money are kept forever.
const (
	sessionsKept = 7 * 24 * time.Hour  // after a session's expiry, for questions about logins
	keysKept     = 48 * time.Hour      // the contract promises 24 h from the response
	failuresKept = 30 * 24 * time.Hour // of a counter that has had none since; the longest memory of Delays
	messagesKept = 30 * 24 * time.Hour // after a message was stored, without its text, for questions about it
	codesKept    = 7 * 24 * time.Hour
	intentsKept  = 15 * time.Minute // after the end of one that was not used; the database itself keeps it to its end
)

// Each statement takes only the oldest rows and skips locked ones.
const (
	pruneSessions = `
DELETE FROM session_families WHERE id IN (
    SELECT id FROM session_families WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	// A counter without a recent failure starts anew, so its row is useless.
	pruneFailures = `
DELETE FROM login_failures WHERE key IN (
    SELECT key FROM login_failures WHERE updated_at < $1 AND (locked_until IS NULL OR locked_until < $3) ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	pruneKeys = `
DELETE FROM idempotency_keys WHERE (scope, key) IN (
    SELECT scope, key FROM idempotency_keys WHERE created_at < $1 AND claimed_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	pruneMessages = `
DELETE FROM messages WHERE id IN (
    SELECT id FROM messages WHERE created_at < $1 AND status <> 'waiting' ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	pruneCodes = `
DELETE FROM verifications WHERE id IN (
    SELECT id FROM verifications WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	pruneChallenges = `
DELETE FROM challenges WHERE id IN (
    SELECT id FROM challenges WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	pruneIntents = `
DELETE FROM intents WHERE id IN (
    SELECT id FROM intents WHERE used_at IS NULL AND expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
)

// Prune deletes at most limit expired rows of each kind: sessions, counters of failed logins without recent failures,
// idempotency keys older than the contract's promise, intents that can no longer be used, messages, codes and challenges
// that ended, and webhook deliveries that ended long ago. It marks unused quotes as expired. Each kind has its own
// transaction, so that a busy one does not delay the others.
func (s *Store) Prune(ctx context.Context, limit int) (exchange.Pruned, error) {
	var p exchange.Pruned
	now := s.now()
	for _, kind := range []struct {
		n     *int
		query string
		args  []any
	}{
		{&p.Sessions, pruneSessions, []any{now.Add(-sessionsKept), limit}},
		{&p.LoginFailures, pruneFailures, []any{now.Add(-failuresKept), limit, now}},
		{&p.IdempotencyKeys, pruneKeys, []any{now.Add(-keysKept), limit}},
		{&p.Messages, pruneMessages, []any{now.Add(-messagesKept), limit}},
		{&p.Verifications, pruneCodes, []any{now.Add(-codesKept), limit}},
		{&p.Challenges, pruneChallenges, []any{now, limit}},
		{&p.Intents, pruneIntents, []any{now.Add(-intentsKept), limit}},
	} {
		err := s.inTx(ctx, "old rows", func(t unitTx) error {
			n, err := t.Exec(ctx, kind.query, kind.args...)
			*kind.n = int(n)
			return err
		})
		if err != nil {
			return p, err
		}
	}
	var err error
	if p.ExpiredQuotes, err = s.ExpireQuotes(ctx, limit); err != nil {
		return p, err
	}
	p.WebhookDeliveries, err = s.PruneWebhooks(ctx, limit)
	return p, err
}
