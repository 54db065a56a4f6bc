-- Reports whether the latest screening of a payment's recipient accepts it. Owners of wallets in our custody are known
-- and not screened. So are accounts of several owners: two officers agreed to them.
CREATE OR REPLACE FUNCTION recipient_cleared(p chain_payments) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN p.purpose = 'multisig_open' OR EXISTS (SELECT FROM wallets w WHERE w.network = p.network AND w.address = p.to_address)
        OR coalesce((SELECT s.verdict = 'clear' FROM screenings s WHERE s.payment_id = p.id OR (p.purpose = 'transfer' AND s.transfer_id = p.object_id)
            ORDER BY s.at DESC, s.id DESC LIMIT 1), false);
END $$;
