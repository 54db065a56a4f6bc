package store

import (
	"context"
	"time"
)

// How long rows outlive their use. What moved money is kept for ever; these only help while they are fresh.
const (
	sessionsKept = 7 * 24 * time.Hour // after the end of a session's life, for questions about logins
	keysKept     = 48 * time.Hour     // the contract promises 24 h from the answer
)

// Each statement takes the oldest rows only and passes over those that somebody works on.
const (
	pruneSessions = `
DELETE FROM session_families WHERE id IN (
    SELECT id FROM session_families WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	// A counter without a failure within its memory starts anew, so its row says nothing.
	pruneFailures = `
DELETE FROM login_failures WHERE key IN (
    SELECT key FROM login_failures WHERE updated_at < $1 AND (locked_until IS NULL OR locked_until < $3) ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	pruneKeys = `
DELETE FROM idempotency_keys WHERE (scope, key) IN (
    SELECT scope, key FROM idempotency_keys WHERE created_at < $1 AND claimed_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	pruneParties = `
DELETE FROM order_parties WHERE id IN (
    SELECT id FROM order_parties WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
)

// Pruned is how many rows a call of Prune deleted.
type Pruned struct{ Sessions, LoginFailures, IdempotencyKeys, Parties int }

// Prune deletes at most limit rows of each kind that has outlived its use: sessions that expired, counters
// of failed logins that nobody added to, idempotency keys older than the contract's promise, and people whose
// order was never opened. The kinds
// are transactions of their own, so that one that is busy does not keep the others.
func (s *Store) Prune(ctx context.Context, limit int) (Pruned, error) {
	var p Pruned
	now := s.now()
	for _, kind := range []struct {
		n     *int
		query string
		args  []any
	}{
		{&p.Sessions, pruneSessions, []any{now.Add(-sessionsKept), limit}},
		{&p.LoginFailures, pruneFailures, []any{now.Add(-failureMemory), limit, now}},
		{&p.IdempotencyKeys, pruneKeys, []any{now.Add(-keysKept), limit}},
		{&p.Parties, pruneParties, []any{now.Add(-partiesKept), limit}},
	} {
		err := s.inTx(ctx, "old rows", func(t unitTx) error {
			n, err := t.exec(ctx, kind.query, kind.args...)
			*kind.n = int(n)
			return err
		})
		if err != nil {
			return p, err
		}
	}
	return p, nil
}
