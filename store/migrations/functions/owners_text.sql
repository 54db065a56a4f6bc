-- What a digest of a change of the owners covers: its thresholds, and one line for each owner. The code computes the same (OwnersChange.Text).
CREATE OR REPLACE FUNCTION owners_text(change jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT (change ->> 'threshold') || '|' || coalesce(change ->> 'control_threshold', '0') || string_agg(E'\n' || concat(o ->> 'address', '|', o ->> 'user_id', '|', o ->> 'weight', '|',
        encode(convert_to(coalesce(o ->> 'label', ''), 'UTF8'), 'hex')), '' ORDER BY i)
    FROM jsonb_array_elements(change -> 'owners') WITH ORDINALITY AS x (o, i)
$$;
