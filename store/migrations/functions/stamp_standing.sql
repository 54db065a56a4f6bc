-- Notes by the database's clock since when an account has its role, and is on or off. No login says it.
CREATE OR REPLACE FUNCTION stamp_standing() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.standing_since := clock_timestamp();
    ELSE
        NEW.standing_since := CASE WHEN (NEW.role, NEW.is_active) = (OLD.role, OLD.is_active) THEN OLD.standing_since ELSE clock_timestamp() END;
    END IF;
    RETURN NEW;
END $$;
