-- Reports whether the agreed owners of an account, and its thresholds, are exactly those of a change.
CREATE OR REPLACE FUNCTION owners_are(p multisig_proposals) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    after jsonb := owners_after(p);
BEGIN
    RETURN coalesce((SELECT jsonb_agg(jsonb_build_object('address', o -> 'address', 'user_id', o -> 'user_id', 'weight', o -> 'weight', 'label', coalesce(o ->> 'label', '')) ORDER BY o ->> 'address')
            FROM jsonb_array_elements(after -> 'owners') o)
        = (SELECT jsonb_agg(jsonb_build_object('address', o.address, 'user_id', o.user_id, 'weight', o.weight, 'label', o.label) ORDER BY o.address)
            FROM multisig_owners o WHERE o.account_id = p.wallet_id AND o.standing = 'agreed')
        AND (SELECT a.threshold = (after ->> 'threshold')::int AND a.control_threshold IS NOT DISTINCT FROM (after ->> 'control_threshold')::int FROM multisig_accounts a WHERE a.id = p.wallet_id), false);
END $$;
