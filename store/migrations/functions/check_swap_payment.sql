-- A payment of a swap is a leg of it that may move now: its collection when it is released, from the wallet to the treasury; its payout when
-- that is final; or its refund when no payout can be. Checked at the end of the transaction that approves it, because holds are written last,
-- and whenever it is signed.
CREATE OR REPLACE FUNCTION check_swap_payment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    p chain_payments;
BEGIN
    SELECT * INTO p FROM chain_payments WHERE id = NEW.id;
    IF p.status NOT IN ('approved', 'signed') OR EXISTS (SELECT FROM chain_attempts WHERE payment_id = p.id AND adopted AND status = 'included') THEN
        RETURN NULL; -- it was given up at once, or is already paid
    END IF;
    IF NOT reserved_for(p, 'swap', p.object_id) OR NOT EXISTS (SELECT FROM swaps s JOIN wallets w ON w.id = s.wallet_id JOIN wallets h ON h.id = s.house_wallet_id WHERE s.id = p.object_id
            AND s.network = p.network AND CASE p.purpose
                WHEN 'swap_collect' THEN (p.wallet_id, p.to_address, p.asset, p.amount, p.hold_id) = (w.id, h.address, s.from_asset, s.from_amount, s.hold_id)
                    AND (s.status = 'collecting' OR s.status = 'reserved' AND s.expires_at > clock_timestamp() - interval '5 seconds')
                    AND EXISTS (SELECT FROM releases r WHERE r.purpose = 'swap' AND r.object_id = s.id AND r.passed_at IS NOT NULL AND r.ended_at IS NULL)
                WHEN 'swap_payout' THEN (p.wallet_id, p.to_address, p.asset, p.amount, p.hold_id) = (h.id, w.address, s.to_asset, s.to_amount, s.reservation_id)
                    AND s.status IN ('paying_out', 'needs_review') AND swap_paid(s.id, 'swap_collect') AND NOT swap_alive(s.id, 'swap_refund')
                ELSE (p.wallet_id, p.to_address, p.asset, p.amount, p.hold_id) = (h.id, w.address, s.from_asset, s.from_amount, s.return_hold_id)
                    AND s.status = 'refunding' AND swap_paid(s.id, 'swap_collect') AND NOT swap_alive(s.id, 'swap_payout') END) THEN
        RAISE EXCEPTION 'chain payment % is no leg of its swap that may move now', p.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
