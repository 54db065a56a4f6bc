package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lib/pq"
)

// Limits of the counters of failed logins.
const (
	failureMemory = 24 * time.Hour // a counter starts anew after this time without a failure
	maxLock       = 24 * time.Hour
	maxDoublings  = 10
)

// One statement counts, so that concurrent failures are all counted. At the limit the counter restarts, and the lock
// time doubles with each restart.
const countLogin = `
INSERT INTO login_failures AS f (key, failures, locks, locked_until, updated_at)
VALUES ($1, CASE WHEN $2 <= 1 THEN 0 ELSE 1 END, CASE WHEN $2 <= 1 THEN 1 ELSE 0 END,
    CASE WHEN $2 <= 1 THEN $3::timestamptz + make_interval(secs => $4) END, $3::timestamptz)
ON CONFLICT (key) DO UPDATE SET
    failures = CASE WHEN f.updated_at < $5 THEN 1 WHEN f.failures + 1 >= $2 THEN 0 ELSE f.failures + 1 END,
    locks = CASE WHEN f.updated_at < $5 THEN 0 WHEN f.failures + 1 >= $2 THEN f.locks + 1 ELSE f.locks END,
    locked_until = CASE WHEN f.updated_at >= $5 AND f.failures + 1 >= $2
        THEN $3::timestamptz + make_interval(secs => least($4 * 2 ^ least(f.locks, $6), $7)) ELSE f.locked_until END,
    updated_at = $3::timestamptz`

const (
	countFailure = countLogin + ` RETURNING locked_until`
	// A locked key counts nothing and returns no row, so of many concurrent attempts only as many pass as the limit
	// allows.
	countAttempt = countLogin + ` WHERE f.locked_until IS NULL OR f.locked_until <= $3 RETURNING locked_until`
)

// LoginFailure counts a failed login under a key. The limit-th failure in a row locks the key for base, the next
// limit-th for twice as long, and so on up to a day. It returns until when the key is locked: a time in the past or
// zero when it is not.
func (s *Store) LoginFailure(ctx context.Context, key string, limit int, base time.Duration) (time.Time, error) {
	now := s.now()
	var until sql.NullTime
	err := s.db.Get(ctx, &until, countFailure, key, max(limit, 1), now, base.Seconds(), now.Add(-failureMemory), maxDoublings, maxLock.Seconds())
	return utc(until), translate(err, "login counter")
}

// LoginAttempt counts an attempt before its secret is checked, as LoginFailure counts failures, and reports whether
// the secret may be checked: not while the key is locked. The attempt that reaches the limit is the last one allowed.
// LoginSuccess resets the count. It also returns until when the key is locked, zero or a time in the past when it is
// not.
func (s *Store) LoginAttempt(ctx context.Context, key string, limit int, base time.Duration) (bool, time.Time, error) {
	now := s.now()
	var until sql.NullTime
	err := s.db.Get(ctx, &until, countAttempt, key, max(limit, 1), now, base.Seconds(), now.Add(-failureMemory), maxDoublings, maxLock.Seconds())
	if errors.Is(err, sql.ErrNoRows) {
		locked, err := s.LoginLocked(ctx, key)
		return false, locked, err
	}
	return err == nil, utc(until), translate(err, "login counter")
}

const readLocks = `SELECT max(locked_until) FROM login_failures WHERE key = ANY ($1) AND locked_until > $2`

// LoginLocked returns the latest time until which one of the keys is locked, zero when none is.
func (s *Store) LoginLocked(ctx context.Context, keys ...string) (time.Time, error) {
	var until sql.NullTime
	err := s.db.Get(ctx, &until, readLocks, pq.Array(keys), s.now())
	return utc(until), translate(err, "login counter")
}

const forgetFailures = `DELETE FROM login_failures WHERE key = $1`

// LoginSuccess resets the failures of a key.
func (s *Store) LoginSuccess(ctx context.Context, key string) error {
	return s.inTx(ctx, "login counter", func(t unitTx) error {
		_, err := t.Exec(ctx, forgetFailures, key)
		return err
	})
}
