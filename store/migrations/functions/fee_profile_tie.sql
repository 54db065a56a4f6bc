-- A version of fees that is in force at some time from a moment on, of another line that is as close to operations which the given
-- line covers too. Lines for one merchant and lines for all never tie: the merchant's is closer.
CREATE OR REPLACE FUNCTION fee_profile_tie(of_scope text, merchant uuid, coin text, chain text, way text, moment timestamptz) RETURNS uuid
    LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT p.id FROM fee_profiles p
    WHERE p.scope = of_scope AND p.merchant_id IS NOT DISTINCT FROM merchant AND NOT p.retired
        AND num_nonnulls(p.asset, p.network, p.method) = num_nonnulls(coin, chain, way)
        AND ROW(p.asset::text, p.network::text, p.method) IS DISTINCT FROM ROW(coin, chain, way)
        AND coalesce(p.asset = coin, true) AND coalesce(p.network = chain, true) AND coalesce(p.method = way, true)
        AND NOT (p.asset IS NOT DISTINCT FROM 'KES' AND chain IS NOT NULL OR coin IS NOT DISTINCT FROM 'KES' AND p.network IS NOT NULL)
        AND coalesce(fee_profile_end(p) > greatest(p.valid_from, moment), true)
    ORDER BY p.id LIMIT 1);
END $$;
