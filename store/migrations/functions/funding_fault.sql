-- The fault of a payment that funds an order from a customer's wallet in our custody; it must go to the order's escrow
-- address. It is approved, and its crypto held, while officers may still have to decide; nothing is signed before that.
CREATE OR REPLACE FUNCTION funding_fault(p chain_payments) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    o orders;
BEGIN
    SELECT * INTO o FROM orders WHERE id = p.object_id FOR SHARE;
    IF NOT FOUND OR o.status NOT IN ('pending', 'confirming') OR o.order_type <> 'OFF_RAMP_SELL'
        OR (o.network, o.asset, o.crypto_amount, o.fund_wallet_id, o.escrow_address) IS DISTINCT FROM (p.network, p.asset, p.amount, p.wallet_id, p.to_address) THEN
        RETURN 'it does not match its order';
    END IF;
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.id = p.wallet_id AND coalesce(w.vendor_id, w.owner_id) = o.customer_id AND w.type = 'hot') THEN
        RETURN 'it does not leave a wallet of the customer';
    END IF;
    IF p.status = 'signed' AND NOT EXISTS (SELECT FROM releases r WHERE r.purpose = 'funding' AND r.object_id = o.id AND r.passed_at IS NOT NULL AND r.ended_at IS NULL) THEN
        RETURN 'it is not released';
    END IF;
    IF NOT reserved_for(p, 'order', o.id) THEN
        RETURN 'its money is not held';
    END IF;
    RETURN '';
END $$;
