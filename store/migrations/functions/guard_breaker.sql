-- Only payout results count and open the breaker, and only an active officer closes it, which puts the next payout on
-- trial.
CREATE OR REPLACE FUNCTION guard_breaker() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_trigger_depth() > 1 THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' OR OLD.opened_at IS NULL OR NEW.opened_at IS NOT NULL OR NEW.hits <> 1 OR NEW.provider <> OLD.provider
        OR NEW.code <> OLD.code OR NEW.closed_at IS NULL OR NOT NEW.trial OR NEW.closings <> OLD.closings + 1 OR NEW.takings <> OLD.takings THEN
        RAISE EXCEPTION 'the breaker of % changes only by payout results or by an officer', NEW.provider USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM control_changes c WHERE c.kind = 'breaker_closed' AND c.applied_in = pg_current_xact_id() AND c.decided_by = NEW.closed_by
        AND c.change ->> 'provider' = NEW.provider;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed that the breaker of % is closed', NEW.provider USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
