-- The officers whose approval of a release counts now: of its object's present terms, by who may still approve and has no part
-- in it. A refund by mobile money is decided by two officers as one change; the payee of one by a change of its own. A refund by
-- bank is agreed to by who proposed it and who confirmed it. A bank payout is approved by who confirms it, the transfer of a
-- withdrawal's crypto by who approved the withdrawal, and a sweep of earned fees by who agreed to it or to its rule, as long as
-- that rule is in force.
CREATE OR REPLACE FUNCTION release_voices(r releases) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
    SELECT u.id FROM users u WHERE u.is_active AND u.role IN ('admin', 'treasury') AND u.id IS DISTINCT FROM r.requester_id AND u.id IN (
        SELECT a.officer_id FROM approvals a JOIN transfers f ON f.id = a.object_id
            WHERE r.purpose = 'transfer' AND a.object_type = 'transfer' AND a.object_id = r.object_id AND a.action = 'approve' AND a.digest = f.digest
        UNION SELECT a.officer_id FROM approvals a JOIN refunds f ON f.id = a.object_id
            WHERE r.purpose = 'refund' AND a.object_type = 'refund' AND a.object_id = r.object_id AND a.action = 'approve' AND a.digest = f.digest
                AND a.officer_id IS DISTINCT FROM f.addressed_by AND a.officer_id IS DISTINCT FROM f.dismissed_by
        UNION SELECT a.officer_id FROM approvals a JOIN otc_withdrawals w ON w.id = a.object_id
            WHERE (r.purpose = 'withdrawal' AND w.id = r.object_id OR r.purpose = 'transfer' AND r.exempt = 'withdrawal'
                    AND w.transfer_intent_id = (SELECT f.intent_id FROM transfers f WHERE f.id = r.object_id))
                AND a.object_type = 'otc_withdrawal' AND a.action = 'approve' AND a.digest = w.digest
        UNION SELECT a.officer_id FROM approvals a JOIN swaps s ON s.id = a.object_id
            WHERE r.purpose = 'swap' AND a.object_type = 'swap' AND a.object_id = r.object_id AND a.action = 'approve' AND a.digest = s.digest
        UNION SELECT a.officer_id FROM approvals a JOIN multisig_proposals p ON p.id = a.object_id
            WHERE r.purpose = 'proposal' AND a.object_type = 'multisig_proposal' AND a.object_id = r.object_id AND a.action = 'approve' AND a.digest = p.digest
        UNION SELECT a.officer_id FROM approvals a WHERE r.purpose = 'funding' AND a.object_type = 'order' AND a.object_id = r.object_id AND a.action = 'approve' AND a.digest = r.digest
        UNION SELECT unnest(ARRAY[c.proposed_by, c.decided_by]) FROM control_changes c LEFT JOIN refunds f ON f.id = r.object_id
            WHERE r.purpose = 'refund' AND coalesce(f.rail, 'momo') = 'momo' AND c.kind = 'refund_decision' AND c.status = 'confirmed' AND c.expires_at > clock_timestamp()
                AND NOT EXISTS (SELECT FROM users w WHERE w.id IN (c.proposed_by, c.decided_by) AND NOT (w.is_active AND w.role IN ('admin', 'treasury')))
                AND c.change ->> 'object_id' IN (r.object_id::text, CASE WHEN NOT payee_chosen(f) THEN coalesce(f.exception_id, f.order_id)::text END)
        UNION SELECT unnest(ARRAY[c.proposed_by, c.decided_by]) FROM refunds f JOIN control_changes c ON c.id = f.change_id AND c.status = 'confirmed'
            WHERE r.purpose = 'refund' AND f.id = r.object_id AND f.rail = 'bank'
        UNION SELECT c.officer_id FROM bank_confirmations c JOIN order_payouts p ON p.id = c.order_id
            WHERE r.purpose = 'payout' AND c.order_id = r.object_id AND c.withdrawn_at IS NULL AND c.amount = p.amount
        UNION SELECT unnest(ARRAY[c.proposed_by, c.decided_by]) FROM fee_sweeps s JOIN control_changes c ON c.id = s.change_id AND c.status = 'confirmed'
            WHERE r.purpose = 'fee_sweep' AND s.id = r.object_id AND CASE WHEN s.scheduled THEN EXISTS (SELECT FROM fee_sweep_rules f WHERE f.change_id = c.id AND f.is_active)
                ELSE NOT EXISTS (SELECT FROM users w WHERE w.id IN (c.proposed_by, c.decided_by) AND NOT (w.is_active AND w.role = 'treasury')) END)
$$;
