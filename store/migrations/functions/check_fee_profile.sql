-- A version of fees is the next one of its line, is exactly what two officers agreed, from the moment that they agreed or confirmed it
-- at, and no other line in force is as close to the same operations.
CREATE OR REPLACE FUNCTION check_fee_profile() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    terms jsonb;
    other uuid;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko fee profiles ' || NEW.scope, 0));
    IF NEW.version <> (SELECT coalesce(max(p.version), 0) + 1 FROM fee_profiles p WHERE p.scope = NEW.scope
            AND ROW(p.merchant_id, p.asset, p.network, p.method) IS NOT DISTINCT FROM ROW(NEW.merchant_id, NEW.asset, NEW.network, NEW.method)) THEN
        RAISE EXCEPTION 'fee profile % is not the next version of its line', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NOT EXISTS (SELECT FROM fee_scopes s WHERE s.scope = NEW.scope AND (NEW.asset IS DISTINCT FROM 'KES' OR s.desk)
            AND (NEW.method IS NULL OR NEW.method = ANY (s.methods))) THEN
        RAISE EXCEPTION 'fee profile % is for what its scope does not have', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.merchant_id IS NOT NULL AND NOT EXISTS (SELECT FROM users u WHERE u.id = NEW.merchant_id AND u.role = 'vendor') THEN
        RAISE EXCEPTION 'fee profile % is for somebody who is no merchant', NEW.id USING ERRCODE = 'KV002';
    END IF;
    SELECT c.change INTO terms FROM control_changes c WHERE c.kind = 'fee_profile' AND c.applied_in = pg_current_xact_id()
        AND c.change ->> 'id' = NEW.id::text;
    IF terms IS NULL OR ROW(terms ->> 'scope', (terms ->> 'merchant_id')::uuid, nullif(terms ->> 'asset', ''), nullif(terms ->> 'network', ''),
            nullif(terms ->> 'method', ''), (terms ->> 'fixed')::numeric, (terms ->> 'basis_points')::int, (terms ->> 'minimum')::numeric,
            (terms ->> 'maximum')::numeric, (terms ->> 'spread_basis_points')::int, coalesce((terms ->> 'retired')::boolean, false),
            greatest((terms ->> 'valid_from')::timestamptz, NEW.created_at))
        IS DISTINCT FROM ROW(NEW.scope, NEW.merchant_id, NEW.asset::text, NEW.network::text, NEW.method, NEW.fixed::numeric, NEW.basis_points,
            NEW.minimum::numeric, NEW.maximum::numeric, NEW.spread_basis_points, NEW.retired, NEW.valid_from) THEN
        RAISE EXCEPTION 'no second officer confirmed fee profile %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    other := CASE WHEN NOT NEW.retired
        THEN fee_profile_tie(NEW.scope, NEW.merchant_id, NEW.asset, NEW.network, NEW.method, NEW.valid_from) END;
    IF other IS NOT NULL THEN
        RAISE EXCEPTION 'fee profile % is as close to some operations as fee profile %', NEW.id, other USING ERRCODE = 'KV060';
    END IF;
    RETURN NEW;
END $$;
