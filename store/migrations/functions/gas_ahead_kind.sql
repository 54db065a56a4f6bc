-- Why a wallet gets gas ahead of need: an active offer sells from it, it is lent to a sale or among the next to be lent, or coins came to
-- it from outside and are still there. NULL for every other one: a cold one or one of another custody, one whose owner is switched
-- off, and one from which something was sent without us.
CREATE OR REPLACE FUNCTION gas_ahead_kind(wallet uuid) RETURNS text LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT CASE
        WHEN EXISTS (SELECT FROM offers o JOIN holds h ON h.id = o.hold_id WHERE o.wallet_id = w.id AND o.status = 'active' AND o.offer_type = 'SELL'
            AND o.deleted_at IS NULL AND h.status = 'held' AND h.amount > 0) THEN 'vendor'
        WHEN w.purpose = 'escrow' AND (EXISTS (SELECT FROM escrow_leases l WHERE l.wallet_id = w.id AND l.ended_at IS NULL)
            OR w.id IN (SELECT a.id FROM escrow_addresses a WHERE a.network = w.network AND a.status = 'free'
                ORDER BY a.last_used_at NULLS FIRST, a.id LIMIT escrow_ahead(w.network))) THEN 'escrow'
        WHEN w.owner_id IS NOT NULL AND EXISTS (SELECT FROM ledger_accounts b JOIN chain_deposits d ON d.wallet_id = w.id AND d.asset = b.asset
            WHERE b.code IN ('wallet_balance:' || w.id || ':USDT', 'wallet_balance:' || w.id || ':USDC') AND b.posted >= p.least
                AND d.status = 'final' AND d.kind = 'credit') THEN 'coins'
        END
    FROM wallets w JOIN gas_policy p ON p.network = w.network
    WHERE w.id = wallet AND w.type = 'hot' AND w.custody = 'custodial' AND w.counterpart_of IS NULL
        AND NOT EXISTS (SELECT FROM users u WHERE u.id IN (w.owner_id, w.vendor_id) AND NOT u.is_active)
        AND NOT EXISTS (SELECT FROM nonce_sequences s WHERE s.wallet_id = w.id AND s.foreign_nonce IS NOT NULL)
        AND NOT EXISTS (SELECT FROM deposit_quarantine q WHERE q.wallet_id = w.id AND q.settled_at IS NULL));
END $$;
