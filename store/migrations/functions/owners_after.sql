-- A change of the owners with the addresses of the keys that were made for it; NULL for another proposal.
CREATE OR REPLACE FUNCTION owners_after(p multisig_proposals) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN p.change || (SELECT jsonb_build_object('owners', jsonb_agg(jsonb_strip_nulls(o || jsonb_build_object('n', c.n, 'address', coalesce(o ->> 'address', c.address))) ORDER BY i))
        FROM jsonb_array_elements(p.change -> 'owners') WITH ORDINALITY AS x (o, i)
        LEFT JOIN multisig_owners c ON c.brought_by = p.id AND c.user_id = (o ->> 'user_id')::uuid AND NOT o ? 'address');
END $$;
