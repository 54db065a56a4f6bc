-- Reports whether those who stay and those who come are together exactly the owners of a change, so that its execution can make them the agreed
-- ones: each has an address, and nobody comes whom it does not name.
CREATE OR REPLACE FUNCTION owners_brought(p multisig_proposals) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    wanted jsonb := owners_after(p) -> 'owners';
BEGIN
    RETURN coalesce((SELECT bool_and((SELECT count(*) FROM multisig_owners c WHERE c.account_id = p.wallet_id AND c.address = o ->> 'address' AND c.user_id::text IS NOT DISTINCT FROM o ->> 'user_id'
                AND (c.standing = 'agreed' OR c.standing = 'coming' AND c.brought_by = p.id AND c.weight = (o ->> 'weight')::int AND c.label = coalesce(o ->> 'label', ''))) = 1)
            FROM jsonb_array_elements(wanted) o), false)
        AND NOT EXISTS (SELECT FROM multisig_owners c WHERE c.brought_by = p.id AND c.standing = 'coming'
            AND NOT EXISTS (SELECT FROM jsonb_array_elements(wanted) o WHERE o ->> 'address' = c.address));
END $$;
