-- The version of fees that sets the fee of an operation at a moment: of those in force that cover it, the closest.
CREATE OR REPLACE FUNCTION fee_profile_for(of_scope text, merchant uuid, coin text, chain text, way text, moment timestamptz) RETURNS uuid
    LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT p.id FROM fee_profiles p
    WHERE p.scope = of_scope AND p.valid_from <= moment AND NOT p.retired AND coalesce(fee_profile_end(p) > moment, true)
        AND (p.merchant_id IS NULL OR p.merchant_id = merchant) AND (p.asset IS NULL OR p.asset = coin)
        AND (p.network IS NULL OR p.network = chain) AND (p.method IS NULL OR p.method = way)
    ORDER BY p.merchant_id IS NULL, num_nonnulls(p.asset, p.network, p.method) DESC LIMIT 1);
END $$;
