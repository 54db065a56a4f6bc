package store

import (
	"context"

	"kivuko/exchange"
)

// A flow that parks with another reason waits from then on; the same reason again keeps the first time.
const insertParked = `
INSERT INTO parked_flows AS p (workflow_id, run_id, flow_type, object_type, object_id, reason, network, since) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (workflow_id) DO UPDATE SET run_id = EXCLUDED.run_id, reason = EXCLUDED.reason, since = EXCLUDED.since
WHERE (p.run_id, p.reason) IS DISTINCT FROM (EXCLUDED.run_id, EXCLUDED.reason)`

// KeepParked lists a flow as parked. A repeated call changes nothing.
func (s *Store) KeepParked(ctx context.Context, p exchange.ParkedFlow) error {
	_, err := s.write(ctx, "parked flow", insertParked, p.WorkflowID, p.RunID, p.Type, p.ObjectType, nullID(p.ObjectID), p.Reason, p.Network, p.Since.UTC())
	return err
}

// DropParked takes a flow off the list. A missing one is no error.
func (s *Store) DropParked(ctx context.Context, workflowID string) error {
	_, err := s.write(ctx, "parked flow", `DELETE FROM parked_flows WHERE workflow_id = $1`, workflowID)
	return err
}

// DropStaleParked takes a flow off the list that is no longer parked, unless it parked again: the row must still be
// the one that was read.
func (s *Store) DropStaleParked(ctx context.Context, p exchange.ParkedFlow) error {
	_, err := s.write(ctx, "parked flow", `DELETE FROM parked_flows WHERE workflow_id = $1 AND run_id = $2 AND since = $3`, p.WorkflowID, p.RunID, p.Since.UTC())
	return err
}

// The rows of one page, with fields of their objects. Every join is by a primary key.
const pageOfParked = `
WITH page AS (
    SELECT * FROM parked_flows
    WHERE ($1 = '' OR reason = $1) AND ($2 = '' OR network = $2) AND (since, workflow_id) > ($3, $4)
    ORDER BY since, workflow_id LIMIT $5)`

const oneParked = `WITH page AS (SELECT * FROM parked_flows WHERE workflow_id = $1)`

// The rows of one page, and what the objects that they are about say. Every join is by an index. Money that came late
// lies in an exception of its prompt, whose amount is what came.
const readParked = `
SELECT p.workflow_id, p.run_id, p.flow_type AS type, p.object_type, p.object_id, p.reason, p.since,
    coalesce(nullif(p.network, ''), c.network, o.network, t.network, r.network, s.network, v.network, m.network, q.network, '') AS network,
    o.id AS order_id, x.id AS exception_id, r.id AS refund_id, t.id AS transfer_id, w.id AS withdrawal_id, d.id AS deposit_id, s.id AS fee_sweep_id, v.id AS swap_id, m.id AS multisig_id, q.id AS proposal_id, coalesce(o.customer_id, t.sender_id) AS customer_id,
    coalesce(o.vendor_id, t.vendor_id, w.merchant_id, d.merchant_id, v.vendor_id, m.merchant_id, q.merchant_id) AS merchant_id,
    coalesce(r.amount, c.amount, x.amount, a.amount, o.crypto_amount, t.amount, w.payout_amount, s.amount, v.from_amount, q.amount, d.fiat_amount)||' '||coalesce(r.asset, c.asset, x.asset, a.asset, o.asset, t.asset, w.payout_asset, s.asset, v.from_asset, q.asset, 'KES') AS amount
FROM page p
LEFT JOIN chain_payments c ON p.object_type = 'chain_payment' AND c.id = p.object_id
LEFT JOIN payment_attempts a ON p.object_type = 'payment_attempt' AND a.id = p.object_id
LEFT JOIN LATERAL (SELECT e.id FROM payment_exceptions e WHERE e.attempt_id = a.id AND e.status = 'open' ORDER BY e.created_at, e.id LIMIT 1) late ON true
LEFT JOIN payment_exceptions x ON x.id = CASE p.object_type WHEN 'payment_exception' THEN p.object_id ELSE late.id END
LEFT JOIN refunds r ON r.id = CASE p.object_type WHEN 'refund' THEN p.object_id WHEN 'payment_attempt' THEN a.refund_id WHEN 'chain_payment' THEN c.object_id END
LEFT JOIN fee_sweeps s ON s.id = CASE p.object_type WHEN 'fee_sweep' THEN p.object_id WHEN 'chain_payment' THEN c.object_id END
LEFT JOIN swaps v ON v.id = CASE p.object_type WHEN 'swap' THEN p.object_id WHEN 'chain_payment' THEN c.object_id END
LEFT JOIN multisig_proposals q ON q.id = CASE p.object_type WHEN 'multisig_proposal' THEN p.object_id WHEN 'chain_payment' THEN c.object_id END
LEFT JOIN multisig_accounts m ON m.id = CASE p.object_type WHEN 'multisig_account' THEN p.object_id WHEN 'chain_payment' THEN c.object_id END
LEFT JOIN orders o ON o.id = coalesce(r.order_id, a.order_id, x.order_id, CASE p.object_type WHEN 'order' THEN p.object_id WHEN 'chain_payment' THEN c.object_id END)
LEFT JOIN transfers t ON t.id = CASE p.object_type WHEN 'transfer' THEN p.object_id WHEN 'chain_payment' THEN c.object_id END
LEFT JOIN otc_withdrawals w ON w.id = CASE p.object_type WHEN 'otc_withdrawal' THEN p.object_id WHEN 'payment_attempt' THEN a.withdrawal_id WHEN 'chain_payment' THEN c.object_id END
LEFT JOIN otc_deposits d ON d.id = CASE p.object_type WHEN 'otc_deposit' THEN p.object_id WHEN 'payment_attempt' THEN a.deposit_id END
ORDER BY p.since, p.workflow_id`

const countParked = `SELECT count(*) FROM parked_flows WHERE ($1 = '' OR reason = $1) AND ($2 = '' OR network = $2)`

// ListParked lists parked flows, longest waiting first, and counts all that match the filter.
func (s *Store) ListParked(ctx context.Context, f exchange.ParkedFilter) ([]exchange.ParkedFlow, int, error) {
	var rows []exchange.ParkedFlow
	size := min(max(f.Size, 1), MaxPageSize+1) // one more shows whether there is another page
	if err := s.db.All(ctx, &rows, pageOfParked+readParked, f.Reason, f.Network, f.After.Since.UTC(), f.After.WorkflowID, size); err != nil {
		return nil, 0, translate(err, "parked flow")
	}
	var total int
	if err := s.db.Get(ctx, &total, countParked, f.Reason, f.Network); err != nil {
		return nil, 0, translate(err, "parked flow")
	}
	return rows, total, nil
}

// ParkedFlow is one flow on the list, with what its object says. It fails with CodeNotFound.
func (s *Store) ParkedFlow(ctx context.Context, workflowID string) (exchange.ParkedFlow, error) {
	return readOne[exchange.ParkedFlow](ctx, s.db, "parked flow", oneParked+readParked, workflowID)
}

// Flows whose payout was never sent come before those whose payout was refused: they are the better trial. One that was never
// sent may have found the breaker open and parked after it was closed. Where the database was put back, one that parks later may
// have found that its payout is lost, which may have been made.
const readSuspended = `
SELECT workflow_id FROM parked_flows WHERE reason IN ('momo-suspended', 'refund-suspended', 'withdrawal-suspended') AND ($3 OR since < $1)
    OR reason IN ('momo-credential', 'refund-credential', 'withdrawal-credential') AND since < $1
ORDER BY reason IN ('momo-credential', 'refund-credential', 'withdrawal-credential'), since, workflow_id LIMIT $2`

// SuspendedFlows lists flows that parked because payouts were suspended or our credential was refused, and that may try now that they
// were let through again. One that is refused after that waits for an officer, and so does one that parks after a database that was
// put back was released.
func (s *Store) SuspendedFlows(ctx context.Context, b exchange.Breaker) ([]exchange.FloatWaiter, error) {
	var ids []string
	if err := s.db.All(ctx, &ids, readSuspended, b.ResumedAt().UTC(), b.Wakeups(), b.ReleasedAt.IsZero()); err != nil {
		return nil, translate(err, "parked flow")
	}
	waiting := make([]exchange.FloatWaiter, len(ids))
	for i, id := range ids {
		waiting[i] = exchange.FloatWaiter{WorkflowID: id}
	}
	return waiting, nil
}
