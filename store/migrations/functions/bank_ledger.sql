-- What the ledger has of an account of the house at a bank.
CREATE OR REPLACE FUNCTION bank_ledger(account uuid) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT a.posted::numeric FROM ledger_accounts a WHERE a.kind = 'bank' AND a.owner_id = account), 0)
$$;
