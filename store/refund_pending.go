package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// maxPendingRefunds bounds the refunds that wait for one officer.
const maxPendingRefunds = 100

// lacksOfficers reports whether fewer officers have approved a refund f than must.
const lacksOfficers = `EXISTS (SELECT FROM releases r WHERE r.purpose = 'refund' AND r.object_id = f.id AND r.ended_at IS NULL AND release_lacks(r))`

const pendingRefunds = `SELECT ` + refundColumns + ` FROM refunds f
WHERE rail = 'chain' AND status IN ('pending', 'needs_review') AND address <> '' AND requested_by IS DISTINCT FROM $1 AND addressed_by IS DISTINCT FROM $1
    AND dismissed_by IS DISTINCT FROM $1
    AND NOT EXISTS (SELECT FROM approvals a WHERE a.object_type = 'refund' AND a.object_id = f.id AND a.digest = f.digest AND (a.officer_id = $1 OR a.action = 'reject'))
    AND ` + lacksOfficers + `
ORDER BY created_at, id LIMIT $2`

// PendingRefunds are the refunds in crypto that the officer may decide, oldest first, at most a hundred.
func (s *Store) PendingRefunds(ctx context.Context, officer uuid.UUID) ([]exchange.Refund, error) {
	var rows []exchange.Refund
	if err := s.db.All(ctx, &rows, pendingRefunds, officer, maxPendingRefunds); err != nil {
		return nil, translate(err, "refund")
	}
	return rows, nil
}

// The refund in crypto of an exception, or the one that an order's flow carries out: of the crypto that it sold, or of a
// deposit that decided the order.
const awaitedRefund = `SELECT f.id FROM refunds f LEFT JOIN payment_exceptions x ON x.id = f.exception_id
WHERE f.rail = 'chain' AND f.status IN ('pending', 'needs_review') AND ($3 OR f.address <> '' AND ` + lacksOfficers + `)
    AND CASE WHEN $2::uuid IS NOT NULL THEN f.exception_id = $2 ELSE f.order_id = $1 AND (x.id IS NULL OR x.kind IN ('under', 'over')) END
ORDER BY f.created_at, f.id LIMIT 1`

// AwaitedRefund returns the refund in crypto of an exception, or else of an order, that waits for another officer's approval;
// zero when none does. One to which an officer has just named an address always waits.
func (s *Store) AwaitedRefund(ctx context.Context, order, exception uuid.UUID, addressed bool) (uuid.UUID, error) {
	var ids []uuid.UUID
	if err := s.db.All(ctx, &ids, awaitedRefund, nullID(order), nullID(exception), addressed); err != nil || len(ids) == 0 {
		return uuid.Nil, translate(err, "refund")
	}
	return ids[0], nil
}
