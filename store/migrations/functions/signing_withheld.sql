-- Why nothing that could move the money of a payment may be signed for the first time; empty when it may. A database that may be older than the
-- chain waits until the watch has read the chain again, and a payment of which a transaction failed until the watch has seen that it moved
-- nothing. What is signed on the cold machine comes back signed.
CREATE OR REPLACE FUNCTION signing_withheld(payment uuid) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    hold text := payment_hold(payment);
BEGIN
    RETURN CASE
        WHEN hold <> '' THEN hold
        WHEN unread_failure(payment) THEN 'the watch has not seen that its failed transaction moved nothing'
        WHEN EXISTS (SELECT FROM chain_payments p JOIN wallets w ON w.id = p.wallet_id JOIN deposit_looks l ON l.network = p.network LEFT JOIN deposit_cursors c ON c.network = l.network
            WHERE p.id = payment AND (w.type = 'hot' OR p.purpose = 'proposal') AND (l.identity <> database_identity()
                OR (l.resumed_at IS NOT NULL AND (l.passed IS NULL OR c.final_number IS NULL OR c.final_number < l.passed)))) THEN 'the watch has not caught up'
        ELSE '' END;
END $$;
