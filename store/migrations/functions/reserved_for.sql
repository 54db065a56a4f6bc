-- Reports whether all of a payment's money is held for an object in the wallet that it leaves.
CREATE OR REPLACE FUNCTION reserved_for(p chain_payments, object_type text, object_id uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id
        WHERE h.id = $1.hold_id AND h.status = 'held' AND h.amount = $1.amount AND h.object_type = $2 AND h.object_id = $3
            AND a.kind = 'wallet_balance' AND a.owner_id = $1.wallet_id AND a.asset = $1.asset);
END $$;
