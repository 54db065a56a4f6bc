package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lib/pq"
)

// Delays are how a counter of failures grows: after Free of them the next attempt has to wait for Base, and twice as long
// after each further one, up to Most. A counter starts anew when it has had no failure for Memory.
type Delays struct {
	Free   int
	Base   time.Duration
	Most   time.Duration
	Memory time.Duration
}

// maxDoublings bounds the exponent, so that it can't overflow. Most is reached long before.
const maxDoublings = 30

// Counted is a counter after an attempt.
type Counted struct {
	Failures int
	Until    time.Time // until when attempts are refused; zero or in the past when they are not
	Allowed  bool      // whether the secret of this attempt may be looked at
}

// One statement counts, so that concurrent failures are all counted.
const countFailure = `
INSERT INTO login_failures AS f (key, failures, locked_until, updated_at)
VALUES ($1, 1, CASE WHEN $2 <= 1 THEN $3::timestamptz + make_interval(secs => $4) END, $3::timestamptz)
ON CONFLICT (key) DO UPDATE SET
    failures = CASE WHEN f.updated_at < $6 THEN 1 ELSE f.failures + 1 END,
    locked_until = CASE WHEN f.updated_at < $6 AND $2 > 1 THEN NULL
        WHEN f.updated_at < $6 THEN $3::timestamptz + make_interval(secs => $4)
        WHEN f.failures + 1 >= $2 THEN $3::timestamptz + make_interval(secs => least($4 * 2 ^ least(f.failures + 1 - $2, $7), $5))
        ELSE f.locked_until END,
    updated_at = $3::timestamptz
-- A counter that refuses counts nothing and returns no row, so of many concurrent attempts only as many pass as it allows.
WHERE f.locked_until IS NULL OR f.locked_until <= $3
RETURNING failures, locked_until`

// LoginAttempt counts an attempt under a key as a failure, before its secret is looked at, and reports whether it may be:
// not while the counter refuses. LoginSuccess takes the failure back.
func (s *Store) LoginAttempt(ctx context.Context, key string, d Delays) (Counted, error) {
	now := s.now()
	var row struct {
		Failures    int
		LockedUntil time.Time
	}
	err := s.db.Get(ctx, &row, countFailure, key, d.Free, now, d.Base.Seconds(), d.Most.Seconds(), now.Add(-d.Memory), maxDoublings)
	if errors.Is(err, sql.ErrNoRows) {
		until, err := s.LoginLocked(ctx, key)
		return Counted{Until: until}, err
	}
	return Counted{row.Failures, row.LockedUntil, err == nil}, translate(err, "login counter")
}

const readLocks = `SELECT max(locked_until) FROM login_failures WHERE key = ANY ($1) AND locked_until > $2`

// LoginLocked returns the latest time until which one of the keys refuses attempts, zero when none does.
func (s *Store) LoginLocked(ctx context.Context, keys ...string) (time.Time, error) {
	var until sql.NullTime
	err := s.db.Get(ctx, &until, readLocks, pq.Array(keys), s.now())
	return utc(until), translate(err, "login counter")
}

const (
	forgetFailures = `DELETE FROM login_failures WHERE key = $1`
	takeBack       = `UPDATE login_failures SET failures = greatest(failures - 1, 0), locked_until = NULL WHERE key = $1`
)

// LoginSuccess takes back the failure that LoginAttempt counted, and with all set every other failure of the key.
func (s *Store) LoginSuccess(ctx context.Context, key string, all bool) error {
	query := takeBack
	if all {
		query = forgetFailures
	}
	_, err := s.write(ctx, "login counter", query, key)
	return err
}
