-- Reports whether a part of a confirmed change contains exactly these limits.
CREATE OR REPLACE FUNCTION limits_agreed(part jsonb, per_transaction numeric, per_day numeric, per_month numeric) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT part IS NOT NULL AND (part ->> 'per_transaction')::numeric IS NOT DISTINCT FROM per_transaction
        AND (part ->> 'per_day')::numeric IS NOT DISTINCT FROM per_day AND (part ->> 'per_month')::numeric IS NOT DISTINCT FROM per_month
$$;
