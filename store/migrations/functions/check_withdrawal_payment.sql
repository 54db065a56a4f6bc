-- The payment of crypto that the house buys is what its withdrawal sells, from the merchant's wallet to the treasury's, and is signed only
-- when the withdrawal was executed and is released. Checked at the end of the transaction that approves it, because holds are written
-- last, and whenever it is signed.
CREATE OR REPLACE FUNCTION check_withdrawal_payment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    p chain_payments;
BEGIN
    SELECT * INTO p FROM chain_payments WHERE id = NEW.id;
    IF p.status NOT IN ('approved', 'signed') OR EXISTS (SELECT FROM chain_attempts WHERE payment_id = p.id AND adopted AND status = 'included') THEN
        RETURN NULL; -- it was given up at once, or is already paid
    END IF;
    IF NOT EXISTS (SELECT FROM otc_withdrawals w WHERE w.id = p.object_id AND w.status = 'executing' AND w.sold_at IS NULL AND w.house_hold_id IS NOT NULL
            AND (w.source_asset, w.source_amount, w.source_wallet_id, w.hold_id) = (p.asset, p.amount, p.wallet_id, p.hold_id)
            AND EXISTS (SELECT FROM releases r WHERE r.purpose = 'withdrawal' AND r.object_id = w.id AND r.passed_at IS NOT NULL AND r.ended_at IS NULL))
        OR NOT EXISTS (SELECT FROM wallets t WHERE t.network = p.network AND t.address = p.to_address AND t.owner_id IS NULL AND t.purpose = 'treasury')
        OR NOT reserved_for(p, 'otc_withdrawal', p.object_id) THEN
        RAISE EXCEPTION 'chain payment % is not what its withdrawal sells', p.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
