package store

import (
	"context"
	"time"

	"kivuko/exchange"
)

const countSilence = `
SELECT count(*) AS submitted, count(*) FILTER (WHERE NOT EXISTS (SELECT FROM momo_callbacks c WHERE c.attempt_id = a.id)) AS silent
FROM payment_attempts a WHERE a.submitted_at >= $1 AND a.submitted_at < $2 AND (a.checkout_request_id <> '' OR a.conversation_id <> '')`

// CallbackSilence counts the requests of a time that the operator took on, and those of them about which it has posted
// nothing to us.
func (s *Store) CallbackSilence(ctx context.Context, from, to time.Time) (exchange.CallbackSilence, error) {
	var row struct{ Submitted, Silent int }
	err := s.read(ctx, &row, countSilence, from, to)
	return exchange.CallbackSilence{Submitted: row.Submitted, Silent: row.Silent}, translate(err, "payment attempts")
}
