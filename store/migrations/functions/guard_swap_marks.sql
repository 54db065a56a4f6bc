-- Water marks are exactly what two officers agreed on. Whether too little was found is noted without them.
CREATE OR REPLACE FUNCTION guard_swap_marks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.low, NEW.high, NEW.change_id) IS NOT DISTINCT FROM (OLD.low, OLD.high, OLD.change_id) THEN
        RETURN NEW;
    END IF;
    PERFORM FROM control_changes c WHERE c.id = NEW.change_id AND c.kind = 'swap_marks' AND c.applied_in = pg_current_xact_id() AND c.change ->> 'id' = NEW.id::text
        AND c.change ->> 'network' = NEW.network AND c.change ->> 'asset' = NEW.asset AND (c.change ->> 'low')::numeric = NEW.low AND (c.change ->> 'high')::numeric = NEW.high;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed marks %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
