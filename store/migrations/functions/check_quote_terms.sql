-- The terms of a quote are those of its rate and fee profile.
CREATE OR REPLACE FUNCTION check_quote_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM fx_rates r WHERE r.id = NEW.rate_id AND r.base = NEW.asset AND r.quote = NEW.fiat_currency AND r.bid = NEW.bid
            AND r.ask = NEW.ask AND r.source = NEW.rate_source AND r.valid_from = NEW.rate_valid_from AND r.stale_at = NEW.rate_stale_at) THEN
        RAISE EXCEPTION 'quote % has other terms than its rate', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.formula NOT IN ('kivuko-price-1', 'kivuko-price-2') THEN
        RAISE EXCEPTION 'quote % has an unknown formula', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF coalesce(NEW.expires_at > quote_end(NEW.purpose, NEW.created_at), true) THEN
        RAISE EXCEPTION 'quote % holds for too long', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.profile_id IS NULL THEN
        IF (NEW.profile_version, NEW.fee_fixed, NEW.fee_points, NEW.fee_minimum, NEW.spread_points, NEW.fee) IS DISTINCT FROM (0, 0, 0, 0, 0, 0) THEN
            RAISE EXCEPTION 'quote % has a fee or a spread without a fee profile', NEW.id USING ERRCODE = 'KV002';
        END IF;
    ELSIF NOT fee_profile_covers(NEW.profile_id, NEW.purpose, NEW.vendor_id, NEW.asset, NEW.network, NEW.method)
        OR NOT EXISTS (SELECT FROM fee_profiles f WHERE f.id = NEW.profile_id AND f.version = NEW.profile_version AND f.fixed = NEW.fee_fixed
            AND f.basis_points = NEW.fee_points AND f.minimum = NEW.fee_minimum AND f.maximum IS NOT DISTINCT FROM NEW.fee_maximum AND f.spread_basis_points = NEW.spread_points) THEN
        RAISE EXCEPTION 'quote % has other terms than its fee profile', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
