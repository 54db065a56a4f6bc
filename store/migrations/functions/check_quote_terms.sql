-- The terms of a quote are those of the newest rate and of the closest fees in force when it is made, for who acts for its merchant,
-- and its price is never better for its owner than they make it. The house pays itself no fee.
CREATE OR REPLACE FUNCTION check_quote_terms() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    owner    record;
    fees     uuid;
    currency text := CASE WHEN NEW.purpose = 'transfer' OR NEW.formula = 'kivuko-price-1' THEN NEW.asset ELSE 'KES' END; -- as fee_currency
    inside   numeric := CASE currency WHEN 'KES' THEN NEW.fee ELSE 0 END;
BEGIN
    IF NOT EXISTS (SELECT FROM fx_rates r WHERE r.id = NEW.rate_id AND r.base = NEW.asset AND r.quote = NEW.fiat_currency AND r.bid = NEW.bid
            AND r.ask = NEW.ask AND r.source = NEW.rate_source AND r.valid_from = NEW.rate_valid_from AND r.stale_at = NEW.rate_stale_at
            AND r.valid_from <= NEW.created_at AND r.stale_at > NEW.created_at AND NOT EXISTS (SELECT FROM fx_rates n
                WHERE n.base = r.base AND n.quote = r.quote AND n.valid_from > r.valid_from AND n.valid_from <= NEW.created_at)) THEN
        RAISE EXCEPTION 'quote % has other terms than its rate', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.formula NOT IN ('kivuko-price-1', 'kivuko-price-2') THEN
        RAISE EXCEPTION 'quote % has an unknown formula', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF coalesce(NEW.expires_at > quote_end(NEW.purpose, NEW.created_at), true) THEN
        RAISE EXCEPTION 'quote % holds for too long', NEW.id USING ERRCODE = 'KV002';
    END IF;
    SELECT u.id, u.role, u.vendor_id INTO STRICT owner FROM users u WHERE u.id = NEW.owner_id; -- whoever prices a deposit reads no secrets
    IF NEW.vendor_id IS DISTINCT FROM (CASE owner.role WHEN 'vendor' THEN owner.id WHEN 'subvendor' THEN owner.vendor_id END) THEN
        RAISE EXCEPTION 'quote % is for a merchant that its owner does not act for', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF owner.role <> 'treasury' THEN
        fees := fee_profile_for(NEW.purpose, NEW.vendor_id, NEW.asset, NEW.network, NEW.method, NEW.created_at);
    END IF;
    IF NEW.profile_id IS DISTINCT FROM fees THEN
        RAISE EXCEPTION 'quote % has not the closest fees in force', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.profile_id IS NULL THEN
        IF (NEW.profile_version, NEW.fee_fixed, NEW.fee_points, NEW.fee_minimum, NEW.spread_points, NEW.fee) IS DISTINCT FROM (0, 0, 0, 0, 0, 0) THEN
            RAISE EXCEPTION 'quote % has a fee or a spread without a fee profile', NEW.id USING ERRCODE = 'KV002';
        END IF;
    ELSIF NOT EXISTS (SELECT FROM fee_profiles f WHERE f.id = NEW.profile_id AND f.version = NEW.profile_version AND f.fixed = NEW.fee_fixed
            AND f.basis_points = NEW.fee_points AND f.minimum = NEW.fee_minimum AND f.maximum IS NOT DISTINCT FROM NEW.fee_maximum AND f.spread_basis_points = NEW.spread_points) THEN
        RAISE EXCEPTION 'quote % has other terms than its fee profile', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.rate <> (CASE NEW.side WHEN 'buy' THEN ceil(NEW.ask * (10000 + NEW.spread_points) * 100) * 0.000001
            ELSE floor(NEW.bid * (10000 - NEW.spread_points) * 100) * 0.000001 END)
        OR NEW.fee <> fee_of(NEW.profile_id, CASE WHEN currency <> 'KES' THEN NEW.amount WHEN NEW.side = 'buy' THEN NEW.fiat_amount
            ELSE trunc(NEW.amount * NEW.rate, asset_scale('KES')) END, currency)
        OR NOT (CASE NEW.side WHEN 'buy' THEN NEW.fiat_amount - inside >= NEW.amount * NEW.rate ELSE NEW.fiat_amount + inside <= NEW.amount * NEW.rate END) THEN
        RAISE EXCEPTION 'quote % has another price than its terms make', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
