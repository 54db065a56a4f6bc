-- Two officers agree to exactly the shorter rests of a network's escrow addresses, and the larger share of unverified users.
CREATE OR REPLACE FUNCTION guard_escrow_policy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'escrow_policy'
            AND (c.change ->> 'network', (c.change ->> 'rest_seconds')::int, (c.change ->> 'idle_rest_seconds')::int, (c.change ->> 'user_percent')::int)
                = (NEW.network::text, NEW.rest_seconds, NEW.idle_rest_seconds, NEW.user_percent)) THEN
        RAISE EXCEPTION 'no second officer confirmed a looser escrow policy of %', NEW.network USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
