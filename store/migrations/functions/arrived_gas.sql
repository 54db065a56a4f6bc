-- What top-ups brought to a wallet in blocks that are not final, so that it is not booked yet. Less what fees of the same or later
-- blocks found there, which were booked before it: the top-up's booking takes that back.
CREATE OR REPLACE FUNCTION arrived_gas(wallet uuid) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (WITH arrived AS (
        SELECT sum(p.amount) AS amount, min(g.block) AS block
        FROM wallets w JOIN chain_payments p ON p.network = w.network AND p.to_address = w.address AND p.purpose = 'gas' AND p.status = 'included'
            JOIN chain_attempts a ON a.payment_id = p.id AND a.status = 'included' JOIN gas_arrivals g ON g.attempt_id = a.id AND g.block_id = a.block_id
        WHERE w.id = wallet
    )
    SELECT greatest(0, coalesce(r.amount, 0) - coalesce((SELECT sum(f.amount - f.netted) FROM gas_found f
        WHERE f.wallet_id = wallet AND f.netted < f.amount AND f.block >= r.block), 0)) FROM arrived r);
END $$;
