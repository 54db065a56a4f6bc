-- What a version of fees charges for an amount of a currency: the fixed part plus the percentage, rounded up, within minimum and maximum.
-- Without a version, nothing.
CREATE OR REPLACE FUNCTION fee_of(profile uuid, amount numeric, coin text) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT least(greatest(p.fixed + ceil(amount * p.basis_points * 0.0001 * 10::numeric ^ asset_scale(coin)) / 10::numeric ^ asset_scale(coin),
        p.minimum), p.maximum) FROM fee_profiles p WHERE p.id = profile), 0)
$$;
