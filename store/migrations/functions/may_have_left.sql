-- Whether the value of an object may have left, is on its way, or may still leave without another judgement.
CREATE OR REPLACE FUNCTION may_have_left(purpose text, object uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN CASE purpose
        WHEN 'transfer' THEN NOT EXISTS (SELECT FROM transfers f WHERE f.id = object AND f.status IN ('cancelled', 'rejected', 'blocked', 'failed'))
        WHEN 'funding' THEN NOT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'funding' AND p.object_id = object AND p.status = 'cancelled')
        WHEN 'fee_sweep' THEN NOT EXISTS (SELECT FROM fee_sweeps s WHERE s.id = object AND s.status = 'cancelled')
        WHEN 'refund' THEN EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'refund' AND p.object_id = object AND p.status <> 'cancelled')
            OR EXISTS (SELECT FROM refunds f WHERE f.id = object AND f.rail = 'bank' AND f.status <> 'failed')
        WHEN 'swap' THEN NOT EXISTS (SELECT FROM swaps s WHERE s.id = object AND s.status IN ('cancelled', 'expired', 'failed'))
        WHEN 'proposal' THEN NOT EXISTS (SELECT FROM multisig_proposals p WHERE p.id = object AND p.status IN ('rejected', 'cancelled', 'expired', 'superseded', 'failed'))
        WHEN 'withdrawal' THEN NOT EXISTS (SELECT FROM otc_withdrawals w WHERE w.id = object AND w.status IN ('rejected', 'cancelled', 'failed'))
        ELSE EXISTS (SELECT FROM order_payouts p WHERE p.id = object AND p.rail = 'bank' AND p.status IN ('processing', 'completed')) END
        OR purpose IN ('refund', 'payout') AND EXISTS (SELECT FROM payment_attempts a WHERE a.object_id = object AND a.direction = 'payout'
            AND a.status IN ('created', 'unknown', 'accepted', 'succeeded'));
END $$;
