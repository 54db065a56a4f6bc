package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// The rows that a flow must carry to their end. A sale lives until its escrow address is released, and an order with a refund
// that is not completed lives too. The refund of an exception is paid by the exception's own flow where it has one: late
// money by the watch over its prompt, unmatched crypto by the flow that returns it.
const readLive = `
WITH own AS (
    SELECT r.order_id, r.exception_id, r.attempt_id, r.rail, r.updated_at, coalesce(x.kind, '') AS kind
    FROM refunds r LEFT JOIN payment_exceptions x ON x.id = r.exception_id WHERE r.status <> 'completed'
), orders_alive AS (
    SELECT id FROM orders WHERE status IN ('pending', 'processing', 'confirming')
    UNION SELECT order_id FROM escrow_leases WHERE ended_at IS NULL
    UNION SELECT order_id FROM own WHERE order_id IS NOT NULL AND (exception_id IS NULL OR (rail = 'momo' AND kind NOT IN ('late', 'duplicate')))
), late AS (
    SELECT attempt_id, max(updated_at) AS updated_at FROM (
        SELECT attempt_id, updated_at FROM own WHERE rail = 'momo' AND kind IN ('late', 'duplicate')
        UNION ALL SELECT attempt_id, updated_at FROM payment_exceptions WHERE status = 'open' AND kind IN ('late', 'duplicate') AND attempt_id IS NOT NULL
    ) w GROUP BY attempt_id
), live AS (
    SELECT CASE WHEN o.order_type LIKE 'ON\_RAMP%' THEN 'purchase' ELSE 'sale' END AS kind, o.id AS object_id, o.intent_id,
        NULL::uuid AS request_id, o.id AS order_id, o.order_type AS type, o.network::text AS network, o.asset::text AS asset,
        o.vendor_id AS merchant_id, o.updated_at
    FROM orders o JOIN orders_alive a ON a.id = o.id
    UNION ALL
    SELECT 'transfer', t.id, t.intent_id, NULL, NULL, '', t.network::text, t.asset::text, NULL, t.updated_at
    FROM transfers t WHERE t.status NOT IN ('completed', 'cancelled', 'rejected', 'failed') AND NOT (t.status = 'blocked' AND t.status_detail = 'released')
    UNION ALL
    SELECT 'otc_deposit', d.id, d.intent_id, NULL, NULL, '', coalesce(d.network::text, ''), coalesce(d.asset::text, ''), d.merchant_id, d.updated_at
    FROM otc_deposits d WHERE d.status NOT IN ('audited', 'rejected', 'cancelled', 'expired')
    UNION ALL
    SELECT 'otc_withdrawal', w.id, w.intent_id, NULL, NULL, '', '', w.payout_asset::text, w.merchant_id, w.updated_at
    FROM otc_withdrawals w WHERE w.status NOT IN ('completed', 'rejected', 'cancelled', 'failed')
    UNION ALL
    SELECT 'swap', s.id, s.intent_id, NULL, NULL, '', s.network::text, s.from_asset::text, s.vendor_id, s.updated_at
    FROM swaps s WHERE s.status NOT IN ('completed', 'refunded', 'cancelled', 'expired', 'failed')
    UNION ALL
    SELECT 'multisig_proposal', p.id, p.intent_id, NULL, NULL, '', p.network::text, p.asset::text, p.merchant_id, p.updated_at
    FROM multisig_proposals p WHERE p.status NOT IN ('executed', 'rejected', 'cancelled', 'expired', 'superseded', 'failed')
    UNION ALL
    SELECT 'late', l.attempt_id, NULL, NULL, a.order_id, '', '', '', NULL, l.updated_at
    FROM late l JOIN payment_attempts a ON a.id = l.attempt_id WHERE a.object_type = 'order'
    UNION ALL
    SELECT 'return', w.exception_id, NULL,
        (SELECT q.id FROM refund_requests q WHERE q.exception_id = w.exception_id ORDER BY q.requested_at DESC, q.id DESC LIMIT 1), w.order_id, '',
        coalesce(r.network::text, ''), r.asset::text, NULL, w.updated_at
    FROM own w JOIN refunds r ON r.exception_id = w.exception_id WHERE w.rail = 'chain' AND w.exception_id IS NOT NULL
    UNION ALL
    SELECT 'fee_sweep', s.id, NULL, NULL, NULL, '', s.network::text, s.asset::text, NULL, s.updated_at FROM fee_sweeps s WHERE s.status IN ('pending', 'processing')
    UNION ALL
    SELECT 'multisig', m.id, NULL, NULL, NULL, '', m.network::text, m.asset::text, m.merchant_id, m.updated_at FROM multisig_accounts m WHERE m.status IN ('preparing', 'opening')
    UNION ALL
    SELECT 'bank_refund', f.id, NULL, NULL, NULL, '', '', f.asset::text, NULL, f.updated_at FROM refunds f WHERE f.rail = 'bank' AND f.status IN ('pending', 'processing')
    UNION ALL
    SELECT 'top_up', p.id, NULL, NULL, NULL, '', p.network::text, p.asset::text, NULL, p.updated_at FROM chain_payments p
    WHERE p.purpose = 'gas' AND p.status IN ('signed', 'broadcast', 'included')
)
SELECT * FROM live WHERE updated_at < $1 AND (kind, object_id) > ($2, $3) ORDER BY kind, object_id LIMIT $4`

// LiveRows lists rows that have not come to their end and did not change since a time, in a fixed order after a place.
func (s *Store) LiveRows(ctx context.Context, unchangedSince time.Time, after exchange.LivePlace, limit int) ([]exchange.LiveRow, error) {
	return readAll[exchange.LiveRow](ctx, s.db, "live row", readLive, unchangedSince.UTC(), string(after.Kind), after.ObjectID, limit)
}

const countAttempts = `SELECT count(*) FROM payment_attempts WHERE object_type = 'order' AND object_id = $1 AND direction = 'collection'`

const owedRefunds = `SELECT r.id FROM refunds r LEFT JOIN payment_exceptions x ON x.id = r.exception_id
WHERE r.order_id = $1 AND r.rail = 'momo' AND r.status <> 'completed' AND coalesce(x.kind, '') NOT IN ('late', 'duplicate') ORDER BY r.created_at, r.id`

// PurchaseProgress reads what was done for a purchase: its prompts, and the refunds that its flow has to pay.
func (s *Store) PurchaseProgress(ctx context.Context, orderID uuid.UUID) (exchange.PurchaseProgress, error) {
	var p exchange.PurchaseProgress
	err := s.db.Get(ctx, &p.Prompts, countAttempts, orderID)
	if err == nil {
		err = s.db.All(ctx, &p.Owed, owedRefunds, orderID)
	}
	return p, translate(err, "order")
}
