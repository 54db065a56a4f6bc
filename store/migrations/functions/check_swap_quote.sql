-- The terms of a swap's quote are those of the newest rates and of the closest fees in force when it is made, for who may swap in its
-- wallet, and its price is never better for its owner than they make it. Neither rate is too far from the value that two officers agreed:
-- the house buys what is given and sells what is got. The house pays itself no fee.
CREATE OR REPLACE FUNCTION check_swap_quote() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asker record;
    fees  uuid;
BEGIN
    IF NOT swap_wallet(NEW.wallet_id, NEW.asked_by) OR NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.network = NEW.network AND w.id <> swap_treasury(NEW.network)) THEN
        RAISE EXCEPTION 'quote % is for a wallet that its owner may not swap in', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF (SELECT count(*) FROM (VALUES
            (NEW.from_asset, NEW.from_rate_id, NEW.from_bid, NEW.from_ask, NEW.from_rate_source, NEW.from_rate_valid_from, NEW.from_rate_stale_at),
            (NEW.to_asset, NEW.to_rate_id, NEW.to_bid, NEW.to_ask, NEW.to_rate_source, NEW.to_rate_valid_from, NEW.to_rate_stale_at)) AS q (asset, id, bid, ask, source, valid_from, stale_at)
        JOIN fx_rates r ON (r.id, r.base, r.quote, r.bid, r.ask, r.source, r.valid_from, r.stale_at) = (q.id, q.asset, 'KES', q.bid, q.ask, q.source, q.valid_from, q.stale_at)
        WHERE r.valid_from <= NEW.created_at AND r.stale_at > NEW.created_at
            AND NOT EXISTS (SELECT FROM fx_rates n WHERE n.base = r.base AND n.quote = r.quote AND n.valid_from > r.valid_from AND n.valid_from <= NEW.created_at)) <> 2 THEN
        RAISE EXCEPTION 'quote % has other terms than its rates', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NOT EXISTS (SELECT FROM valuations v WHERE v.asset = NEW.from_asset AND NEW.from_bid + NEW.from_ask <= v.agreed * 2.2)
        OR NOT EXISTS (SELECT FROM valuations v WHERE v.asset = NEW.to_asset AND NEW.to_bid + NEW.to_ask >= v.agreed * 1.5) THEN
        RAISE EXCEPTION 'quote % has a price that is too far from the value that two officers agreed', NEW.id USING ERRCODE = 'KV006';
    END IF;
    IF NEW.created_at > clock_timestamp() + interval '1 minute' THEN
        RAISE EXCEPTION 'quote % holds for too long', NEW.id USING ERRCODE = 'KV002';
    END IF;
    SELECT u.id, u.role, u.vendor_id INTO STRICT asker FROM users u WHERE u.id = NEW.asked_by;
    IF NEW.vendor_id IS DISTINCT FROM (CASE asker.role WHEN 'vendor' THEN asker.id WHEN 'subvendor' THEN asker.vendor_id END) THEN
        RAISE EXCEPTION 'quote % is for a merchant that its owner does not act for', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF asker.role <> 'treasury' THEN
        fees := fee_profile_for('swap', NEW.vendor_id, NEW.to_asset, NEW.network, NULL, NEW.created_at);
    END IF;
    IF NEW.profile_id IS DISTINCT FROM fees THEN
        RAISE EXCEPTION 'quote % has not the closest fees in force', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.profile_id IS NULL AND (NEW.profile_version, NEW.fee_fixed, NEW.fee_points, NEW.fee_minimum, NEW.spread_points, NEW.fee) IS DISTINCT FROM (0, 0, 0, 0, 0, 0)
        OR NEW.profile_id IS NOT NULL AND NOT EXISTS (SELECT FROM fee_profiles f WHERE f.id = NEW.profile_id AND f.version = NEW.profile_version AND f.fixed = NEW.fee_fixed
            AND f.basis_points = NEW.fee_points AND f.minimum = NEW.fee_minimum AND f.maximum IS NOT DISTINCT FROM NEW.fee_maximum AND f.spread_basis_points = NEW.spread_points) THEN
        RAISE EXCEPTION 'quote % has other terms than its fee profile', NEW.id USING ERRCODE = 'KV002';
    END IF;
    -- Both sides are multiplied out: a quotient would be rounded.
    IF NEW.rate * (NEW.to_bid + NEW.to_ask) * 10000 > (NEW.from_bid + NEW.from_ask) * (10000 - NEW.spread_points)
        OR NEW.to_amount + NEW.fee > NEW.from_amount * NEW.rate OR NEW.fee <> fee_of(NEW.profile_id, NEW.to_amount + NEW.fee, NEW.to_asset) THEN
        RAISE EXCEPTION 'quote % has another price than its terms make', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
