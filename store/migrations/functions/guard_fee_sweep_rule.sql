-- A rule that sweeps earned fees by itself is exactly what two treasury officers agreed on. One of them may switch it off.
CREATE OR REPLACE FUNCTION guard_fee_sweep_rule() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NOT NEW.is_active AND (NEW.threshold, NEW.least, NEW.change_id) IS NOT DISTINCT FROM (OLD.threshold, OLD.least, OLD.change_id) THEN
        RETURN NEW;
    END IF;
    PERFORM FROM control_changes c WHERE c.id = NEW.change_id AND c.kind = 'fee_sweep_rule' AND c.applied_in = pg_current_xact_id() AND c.change ->> 'id' = NEW.id::text
        AND c.change ->> 'network' = NEW.network AND c.change ->> 'asset' = NEW.asset AND (c.change ->> 'threshold')::numeric = NEW.threshold
        AND (c.change ->> 'least')::numeric = NEW.least AND NEW.is_active;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed rule % of fee sweeps', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
