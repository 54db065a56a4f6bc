-- Two officers agree to exactly the shorter rest of new destinations, or the higher value above which they rest.
CREATE OR REPLACE FUNCTION guard_release_policy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'house_limits'
            AND (c.change -> 'new_destinations' ->> 'rest_seconds')::int = NEW.rest_seconds
            AND (c.change -> 'new_destinations' ->> 'rest_above')::numeric = NEW.rest_above) THEN
        RAISE EXCEPTION 'no second officer confirmed a shorter rest of new destinations' USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
