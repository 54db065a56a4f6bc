-- The fault of a payment of an order's deposit to its buyer: it must leave when the order is paid out, from its escrow
-- address to the buyer's wallet, with the claimed amount. A failed order counts as paid out when a payout recorded as
-- refused is proven to have paid; if its crypto was already refunded, nothing is held any more.
CREATE OR REPLACE FUNCTION order_sweep_fault(p chain_payments) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    o orders;
BEGIN
    SELECT * INTO o FROM orders WHERE id = p.object_id FOR SHARE;
    IF o.order_type NOT IN ('OFF_RAMP_BUY', 'OFF_RAMP_SELL') OR (o.network, o.asset, o.escrow_address) IS DISTINCT FROM (p.network, p.asset, p.from_address) THEN
        RETURN 'it does not leave the escrow address of its order';
    END IF;
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.id = o.wallet_id AND w.network = p.network AND w.address = p.to_address) THEN
        RETURN 'it does not go to the buyer of the crypto';
    END IF;
    IF NOT reserved_for(p, 'order', o.id) OR NOT EXISTS (SELECT FROM escrow_claims c WHERE c.order_id = o.id AND c.asset = p.asset
            AND c.amount = p.amount AND c.kind IN ('exact', 'repriced')) THEN
        RETURN 'it does not match the deposit of the order';
    END IF;
    IF o.status IN ('completed', 'failed') AND EXISTS (SELECT FROM order_payouts y WHERE y.id = o.id AND y.status = 'completed') THEN
        RETURN '';
    END IF;
    RETURN 'its order is not paid out';
END $$;
