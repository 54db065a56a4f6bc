-- Reports whether a movement that no payment of ours made is just what a payload that can be executed would move.
CREATE OR REPLACE FUNCTION may_be_proposal(q deposit_quarantine) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM multisig_payloads y JOIN chain_payments p ON p.id = y.payment_id
        WHERE y.wallet_id = q.wallet_id AND y.status = 'open' AND y.found_tx = '' AND p.network = q.network AND (p.to_address, p.asset, p.amount) = (q.to_address, q.asset, q.amount));
END $$;
