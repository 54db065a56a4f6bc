-- Reports whether what owners sign for a proposal that moves nothing says just that: exactly the owners, weights and thresholds of the change, or
-- neither a transfer nor owners.
CREATE OR REPLACE FUNCTION payload_says(joint jsonb, p multisig_proposals) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    after jsonb := owners_after(p);
    said  jsonb := joint -> 'owners';
    want  jsonb := (SELECT jsonb_agg(jsonb_build_object('address', o -> 'address', 'weight', o -> 'weight') ORDER BY o ->> 'address') FROM jsonb_array_elements(after -> 'owners') o);
BEGIN
    RETURN coalesce(joint ->> 'account' = p.destination AND coalesce(joint -> 'transfer', 'null') = 'null' AND CASE p.kind
        WHEN 'cancel' THEN coalesce(said, 'null') = 'null'
        WHEN 'owners' THEN want = (SELECT jsonb_agg(o ORDER BY o ->> 'address') FROM jsonb_array_elements(said -> 'owners') o) AND said -> 'threshold' = after -> 'threshold'
            AND CASE WHEN said ? 'control' THEN said -> 'control' -> 'threshold' = after -> 'control_threshold'
                    AND want = (SELECT jsonb_agg(o ORDER BY o ->> 'address') FROM jsonb_array_elements(said -> 'control' -> 'owners') o)
                ELSE coalesce(after -> 'control_threshold', after -> 'threshold') = after -> 'threshold' END
        ELSE false END, false);
END $$;
