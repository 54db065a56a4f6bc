package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// maxPendingRefunds bounds the refunds that wait for one officer.
const maxPendingRefunds = 100

const pendingRefunds = `SELECT ` + refundColumns + ` FROM refunds f
WHERE rail = 'chain' AND status IN ('pending', 'needs_review') AND address <> '' AND requested_by IS DISTINCT FROM $1 AND addressed_by IS DISTINCT FROM $1
    AND dismissed_by IS DISTINCT FROM $1
    AND NOT EXISTS (SELECT FROM approvals a WHERE a.object_type = 'refund' AND a.object_id = f.id AND a.digest = f.digest AND (a.officer_id = $1 OR a.action = 'reject'))
    AND refund_officers(f) > (SELECT count(*) FROM approvals a JOIN users u ON u.id = a.officer_id WHERE a.object_type = 'refund' AND a.object_id = f.id
        AND a.digest = f.digest AND a.action = 'approve' AND u.is_active AND u.role IN ('admin', 'treasury') AND u.id IS DISTINCT FROM f.dismissed_by)
ORDER BY created_at, id LIMIT $2`

// PendingRefunds are the refunds in crypto that the officer may decide, oldest first, at most a hundred.
func (s *Store) PendingRefunds(ctx context.Context, officer uuid.UUID) ([]exchange.Refund, error) {
	var rows []exchange.Refund
	if err := s.db.All(ctx, &rows, pendingRefunds, officer, maxPendingRefunds); err != nil {
		return nil, translate(err, "refund")
	}
	return rows, nil
}
