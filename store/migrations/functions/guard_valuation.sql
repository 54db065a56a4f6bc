-- A lower valuation lets more of a stablecoin pass under every limit, so it needs two officers.
CREATE OR REPLACE FUNCTION guard_valuation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'house_limits'
            AND (c.change -> 'valuations' ->> NEW.asset)::numeric = NEW.rate) THEN
        RAISE EXCEPTION 'no second officer confirmed a lower valuation of %', NEW.asset USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
