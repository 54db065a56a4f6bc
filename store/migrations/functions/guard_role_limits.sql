-- Two officers agree to exactly the higher limits of a role.
CREATE OR REPLACE FUNCTION guard_role_limits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'house_limits'
            AND limits_agreed(c.change -> 'roles' -> NEW.role, NEW.per_transaction, NEW.per_day, NEW.per_month)) THEN
        RAISE EXCEPTION 'no second officer confirmed higher limits for %', NEW.role USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
