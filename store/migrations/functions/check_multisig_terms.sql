-- At the end of the transaction the owners of an account, and the rules by which officers approve what leaves it, are exactly those that two
-- officers agreed to. What was agreed says no address of an owner whose key we make.
CREATE OR REPLACE FUNCTION check_multisig_terms() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    account uuid := CASE TG_TABLE_NAME WHEN 'multisig_accounts' THEN to_jsonb(NEW) ->> 'id' ELSE to_jsonb(NEW) ->> 'account_id' END;
    agreed  jsonb := (SELECT c.change FROM multisig_accounts a JOIN control_changes c ON c.id = a.change_id WHERE a.id = account);
BEGIN
    IF (SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('n', o.n, 'address', CASE WHEN NOT o.held THEN o.address END, 'user_id', o.user_id, 'weight', o.weight,
                'label', o.label, 'held', o.held)) ORDER BY o.n) FROM multisig_owners o WHERE o.account_id = account AND o.brought_by IS NULL) IS DISTINCT FROM agreed -> 'owners'
        OR EXISTS (SELECT r.version, r.above::numeric, r.approvals FROM multisig_rules r WHERE r.account_id = account
            EXCEPT SELECT 1, (w ->> 'above')::numeric, (w ->> 'approvals')::int FROM jsonb_array_elements(agreed -> 'policy' -> 'value_rules') w)
        OR (SELECT count(*) FROM multisig_rules r WHERE r.account_id = account) <> jsonb_array_length(agreed -> 'policy' -> 'value_rules') THEN
        RAISE EXCEPTION 'account % has other owners or rules than two officers agreed to', account USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
