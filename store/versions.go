package store

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// expect refuses a change whose expected versions don't have the stored one. The caller has locked the object. Without
// versions, any is expected.
func expect(expected []int64, stored int64) error {
	if len(expected) > 0 && !slices.Contains(expected, stored) {
		return exchange.ChangedMeanwhile()
	}
	return nil
}

// versionReader is the database or a transaction.
type versionReader interface {
	Get(ctx context.Context, dest any, query string, args ...any) error
}

func versionOf(ctx context.Context, db versionReader, query string, args ...any) (int64, error) {
	var v int64
	return v, db.Get(ctx, &v, query, args...)
}

// Objects of several rows have no number of their own: their version is a positive hash of the rows.
const (
	userVersion = `
SELECT greatest(hashtextextended(concat_ws(' ', u.version, l::text), 0) & 9223372036854775807, 1)
FROM users u LEFT JOIN user_limits l ON l.user_id = u.id WHERE u.id = $1`

	houseLimitsVersion = `
SELECT greatest(hashtextextended(concat_ws(' ', (SELECT string_agg(r::text, ' ' ORDER BY role) FROM role_limits r),
	(SELECT string_agg(v::text, ' ' ORDER BY asset) FROM valuations v),
	(SELECT string_agg(a::text, ' ' ORDER BY object_type) FROM approval_rules a), (SELECT p::text FROM release_policy p)), 0) & 9223372036854775807, 1)`

	lockPolicies = `SELECT sum(version)::bigint FROM (SELECT version FROM escrow_policy ORDER BY network FOR NO KEY UPDATE) p`
)

// UserVersion returns the version of a user and the user's own limits. Read it before the user: an older version only
// refuses a change that would have been right.
func (s *Store) UserVersion(ctx context.Context, id uuid.UUID) (int64, error) {
	v, err := versionOf(ctx, s.db, userVersion, id)
	return v, translate(err, "user")
}

// HouseLimitsVersion returns the version of all that PatchLimits changes. Read it before the limits.
func (s *Store) HouseLimitsVersion(ctx context.Context) (int64, error) {
	v, err := versionOf(ctx, s.db, houseLimitsVersion)
	return v, translate(err, "limit")
}
