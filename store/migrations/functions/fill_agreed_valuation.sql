-- Only the confirmation of two officers writes the agreed value of a coin.
CREATE OR REPLACE FUNCTION fill_agreed_valuation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.agreed := CASE WHEN TG_OP = 'UPDATE' THEN OLD.agreed END;
    IF EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'house_limits'
            AND (c.change -> 'valuations' ->> NEW.asset)::numeric = NEW.rate) THEN
        NEW.agreed := NEW.rate;
    END IF;
    RETURN NEW;
END $$;
