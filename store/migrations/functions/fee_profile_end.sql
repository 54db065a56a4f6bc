-- When a version of fees ends: when the first higher one of its line begins. NULL when there is none.
CREATE OR REPLACE FUNCTION fee_profile_end(p fee_profiles) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT min(n.valid_from) FROM fee_profiles n WHERE n.scope = p.scope AND n.version > p.version
        AND ROW(n.merchant_id, n.asset, n.network, n.method) IS NOT DISTINCT FROM ROW(p.merchant_id, p.asset, p.network, p.method));
END $$;
