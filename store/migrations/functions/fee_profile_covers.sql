-- Whether a version of fees is for an operation.
CREATE OR REPLACE FUNCTION fee_profile_covers(profile uuid, of_scope text, merchant uuid, coin text, chain text, way text) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM fee_profiles p WHERE p.id = profile AND p.scope = of_scope AND NOT p.retired
        AND (p.merchant_id IS NULL OR p.merchant_id = merchant) AND (p.asset IS NULL OR p.asset = coin)
        AND (p.network IS NULL OR p.network = chain) AND (p.method IS NULL OR p.method = way));
END $$;
