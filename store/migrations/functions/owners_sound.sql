-- Reports whether an account can have the owners and thresholds of a change: enough owners and not too many, each once, with weights that reach the
-- thresholds only together. An owner who stays is named as agreed, with the officer; one who comes by an address, or by an officer for whom a
-- key is made. Nothing is left open, so that what officers approve can be carried out.
CREATE OR REPLACE FUNCTION owners_sound(change jsonb, account uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    a         multisig_accounts := (SELECT m FROM multisig_accounts m WHERE m.id = account);
    owners    jsonb := $1 -> 'owners';
    threshold int := ($1 ->> 'threshold')::int;
    control   int := ($1 ->> 'control_threshold')::int;
BEGIN
    RETURN coalesce(jsonb_strip_nulls($1) = $1 AND jsonb_array_length(owners) BETWEEN 2 AND CASE a.kind WHEN 'safe' THEN 20 WHEN 'tron' THEN 5 END
        AND (SELECT bool_and(coalesce((o ->> 'weight')::int BETWEEN 1 AND CASE a.kind WHEN 'tron' THEN 1000 ELSE 1 END AND char_length(coalesce(o ->> 'label', '')) <= 200
                AND CASE WHEN o ? 'address' THEN char_length(o ->> 'address') BETWEEN 20 AND 128 AND o ->> 'address' <> a.address AND o ->> 'user_id' IS NOT DISTINCT FROM
                        (SELECT c.user_id::text FROM multisig_owners c WHERE c.account_id = a.id AND c.standing = 'agreed' AND c.address = o ->> 'address')
                    ELSE o ->> 'user_id' = (o ->> 'user_id')::uuid::text END, false))
            AND count(o ->> 'address') = count(DISTINCT o ->> 'address') AND count(o ->> 'user_id') = count(DISTINCT o ->> 'user_id')
            AND threshold BETWEEN 1 AND sum((o ->> 'weight')::int) AND threshold > max((o ->> 'weight')::int)
            AND CASE a.kind WHEN 'tron' THEN control BETWEEN threshold AND sum((o ->> 'weight')::int) ELSE control IS NULL END
            FROM jsonb_array_elements(owners) o), false);
END $$;
