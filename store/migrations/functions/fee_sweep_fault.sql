-- The fault of a payment of earned fees. It goes from the wallet where they lie to the treasury of its network, with exactly
-- what is held of them, and leaves there what the wallet owes its owner. One that a rule asked for leaves only while that rule is in force.
CREATE OR REPLACE FUNCTION fee_sweep_fault(p chain_payments) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    s fee_sweeps;
BEGIN
    SELECT * INTO s FROM fee_sweeps WHERE id = p.object_id FOR SHARE;
    IF NOT FOUND OR s.status NOT IN ('pending', 'processing') OR (s.network, s.asset, s.amount, s.wallet_id, s.hold_id)
            IS DISTINCT FROM (p.network, p.asset, p.amount, p.wallet_id, p.hold_id) THEN
        RETURN 'it does not match its fee sweep';
    END IF;
    PERFORM FROM fee_sweep_rules f WHERE f.change_id = s.change_id AND f.is_active FOR SHARE;
    IF s.scheduled AND NOT FOUND THEN
        RETURN 'its rule was switched off or replaced';
    END IF;
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.network = p.network AND w.address = p.to_address AND w.owner_id IS NULL AND w.purpose = 'treasury') THEN
        RETURN 'it does not go to the treasury';
    END IF;
    IF NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = p.hold_id AND h.status = 'held' AND h.amount = p.amount
            AND a.kind = 'wallet_fees' AND a.owner_id = p.wallet_id AND a.asset = p.asset) THEN
        RETURN 'its fees are not held';
    END IF;
    IF (SELECT coalesce(sum(CASE a.kind WHEN 'custody' THEN a.posted ELSE -a.posted END), 0) FROM ledger_accounts a
            WHERE a.owner_id = p.wallet_id AND a.asset = p.asset AND a.kind IN ('custody', 'wallet_balance')) < p.amount THEN
        RETURN 'the wallet would have less than it owes its owner';
    END IF;
    IF p.status = 'signed' AND NOT EXISTS (SELECT FROM releases r WHERE r.purpose = 'fee_sweep' AND r.object_id = s.id AND r.passed_at IS NOT NULL AND r.ended_at IS NULL) THEN
        RETURN 'it is not released';
    END IF;
    RETURN '';
END $$;
