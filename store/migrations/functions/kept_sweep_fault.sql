-- The fault of a payment of crypto that the house keeps; it must go from the escrow address, or from the counterpart
-- wallet on the wrong network, to the treasury of its network.
CREATE OR REPLACE FUNCTION kept_sweep_fault(p chain_payments) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x payment_exceptions;
BEGIN
    SELECT * INTO x FROM payment_exceptions WHERE id = p.object_id FOR SHARE;
    IF x.status IS NULL OR x.status NOT IN ('accepted', 'written_off') OR x.asset <> p.asset OR x.amount <> p.amount OR NOT reserved_for(p, 'payment_exception', x.id) THEN
        RETURN 'it is not money that the house keeps';
    END IF;
    IF NOT EXISTS (SELECT FROM chain_deposits d JOIN wallets w ON w.id = d.wallet_id WHERE d.id = deposit_of(x.receipt) AND d.status = 'final'
            AND d.wallet_id = p.wallet_id AND d.asset = p.asset AND d.amount = p.amount AND w.owner_id IS NULL AND w.purpose IN ('escrow', 'counterpart')) THEN
        RETURN 'it does not leave the address where the money lies';
    END IF;
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.network = p.network AND w.address = p.to_address AND w.owner_id IS NULL AND w.purpose = 'treasury') THEN
        RETURN 'it does not go to the treasury';
    END IF;
    RETURN '';
END $$;
