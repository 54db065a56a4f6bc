-- Reports whether the owners who signed a payload have together the weight that its account needs.
CREATE OR REPLACE FUNCTION payload_signed(payload uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN coalesce((SELECT sum(o.weight) >= min(a.threshold) FROM multisig_payloads y JOIN multisig_accounts a ON a.id = y.wallet_id
        JOIN multisig_signatures s ON s.payload_id = y.id JOIN multisig_owners o ON o.account_id = a.id AND o.address = s.owner WHERE y.id = payload), false);
END $$;
