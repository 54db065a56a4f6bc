-- What a version of fees charges for an amount of a currency: the fixed part plus the percentage, rounded up, within minimum and maximum.
-- Nothing without a version, and NULL of no amount.
CREATE OR REPLACE FUNCTION fee_of(profile uuid, amount numeric, coin text) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN CASE WHEN amount IS NOT NULL THEN coalesce((
        SELECT least(greatest(p.fixed + ceil(amount * p.basis_points * 0.0001 * 10::numeric ^ asset_scale(coin)) / 10::numeric ^ asset_scale(coin),
            p.minimum), p.maximum) FROM fee_profiles p WHERE p.id = profile), 0) END;
END $$;
