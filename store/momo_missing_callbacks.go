package store

import (
	"context"
	"time"

	"kivuko/exchange"
)

const countMissingCallbacks = `
SELECT count(*) AS submitted, count(*) FILTER (WHERE NOT EXISTS (SELECT FROM momo_callbacks c WHERE c.attempt_id = a.id)) AS missing
FROM payment_attempts a WHERE a.submitted_at >= $1 AND a.submitted_at < $2 AND (a.checkout_request_id <> '' OR a.conversation_id <> '')`

// MissingCallbacks counts the requests of an interval that the provider accepted, and those of them without a
// callback.
func (s *Store) MissingCallbacks(ctx context.Context, from, to time.Time) (exchange.MissingCallbacks, error) {
	var row struct{ Submitted, Missing int }
	err := s.db.Get(ctx, &row, countMissingCallbacks, from, to)
	return exchange.MissingCallbacks{Submitted: row.Submitted, Missing: row.Missing}, translate(err, "payment attempts")
}
