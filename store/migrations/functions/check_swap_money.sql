-- At the end of the transaction, because holds and payments are written together: a swap is where its legs are, and its money is held as long
-- as it may have to go somewhere. What is given is held in the wallet until it is collected, and from then on in the treasury until the payout
-- or the refund is final; what is got is held in the treasury until the payout is final, or the swap moves nothing or goes back. Whoever
-- changes a hold or a payment of a swap is asked the same.
CREATE OR REPLACE FUNCTION check_swap_money() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    s         swaps;
    collected boolean;
    paid      boolean;
    returned  boolean;
BEGIN
    SELECT * INTO s FROM swaps WHERE id = CASE TG_TABLE_NAME WHEN 'swaps' THEN NEW.id ELSE (to_jsonb(NEW) ->> 'object_id')::uuid END;
    collected := swap_paid(s.id, 'swap_collect');
    paid := swap_paid(s.id, 'swap_payout');
    returned := swap_paid(s.id, 'swap_refund');
    IF NOT coalesce(
            collected = (s.collected_at IS NOT NULL)
            AND (s.status NOT IN ('cancelled', 'expired', 'failed') OR NOT swap_alive(s.id, 'swap_collect'))
            AND (s.status <> 'collecting' OR swap_alive(s.id, 'swap_collect'))
            AND paid = (s.status IN ('syncing', 'completed') OR s.status = 'needs_review' AND paid)
            AND (s.status <> 'paying_out' OR swap_alive(s.id, 'swap_payout'))
            AND (s.status NOT IN ('refunding', 'refunded') OR NOT swap_alive(s.id, 'swap_payout'))
            AND returned = (s.status = 'refunded'), false) THEN
        RAISE EXCEPTION 'swap % is % and its legs are not', s.id, s.status USING ERRCODE = 'KV001';
    END IF;
    IF (SELECT count(*) FROM (VALUES
            (s.hold_id, s.wallet_id, s.from_asset, s.from_amount, CASE WHEN collected THEN 'captured' WHEN s.status IN ('cancelled', 'expired', 'failed') THEN 'released' ELSE 'held' END),
            (s.reservation_id, s.house_wallet_id, s.to_asset, s.to_amount,
                CASE WHEN paid THEN 'captured' WHEN s.status IN ('cancelled', 'expired', 'failed', 'refunding', 'refunded') THEN 'released' ELSE 'held' END),
            (s.return_hold_id, s.house_wallet_id, s.from_asset, s.from_amount, CASE WHEN returned THEN 'captured' WHEN paid THEN 'released' ELSE 'held' END)
            ) AS w (id, wallet, asset, amount, status)
        JOIN holds h ON h.id = w.id AND h.object_type = 'swap' AND h.object_id = s.id AND h.placed = w.amount AND h.status = w.status AND (h.status <> 'held' OR h.amount = h.placed)
        JOIN ledger_accounts a ON a.id = h.account_id AND a.code = 'wallet_balance:' || w.wallet || ':' || w.asset) <> (CASE WHEN s.return_hold_id IS NULL THEN 2 ELSE 3 END) THEN
        RAISE EXCEPTION 'the money of swap % is not where it is %', s.id, s.status USING ERRCODE = 'KV002';
    END IF;
    IF paid AND s.fee > 0 AND (SELECT count(*) FROM ledger_keys e JOIN ledger_lines l ON l.entry_id = e.entry_id JOIN ledger_accounts a ON a.id = l.account_id
            WHERE e.key IN ('swap:' || s.id || ':fee', 'swap:' || s.id || ':fee_kept') AND a.code = 'wallet_fees:' || s.house_wallet_id || ':' || s.to_asset
                AND (e.key = 'swap:' || s.id || ':fee' AND l.amount = -s.fee OR e.key = 'swap:' || s.id || ':fee_kept' AND l.amount = s.fee)) <> 2 THEN
        RAISE EXCEPTION 'the fee of swap % is not booked', s.id USING ERRCODE = 'KV002';
    END IF;
    IF s.status IN ('cancelled', 'expired', 'failed') AND EXISTS (SELECT FROM releases r WHERE r.purpose = 'swap' AND r.object_id = s.id AND r.ended_at IS NULL) THEN
        RAISE EXCEPTION 'swap % moves nothing and its release still counts', s.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
