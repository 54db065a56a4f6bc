-- Holds the persons of a change to their roles, whoever writes it. Both are locked, so that an account that is being
-- deactivated at this moment does not count. A treasury officer may propose what is the treasury's business. Who is of
-- a role whose limits change gains by it and can't confirm it.
CREATE OR REPLACE FUNCTION check_control_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    decider text;
BEGIN
    NEW.applied_in := NULL;
    PERFORM FROM users WHERE id = NEW.proposed_by AND is_active AND (role = 'admin'
        OR (role = 'treasury' AND NEW.kind IN ('momo_terms', 'treasury_allocation', 'float_move', 'exception_decision', 'payout_word'))) FOR SHARE;
    IF NOT FOUND AND NEW.status <> 'rejected' THEN
        RAISE EXCEPTION 'change % is not proposed by anybody active who may', NEW.id USING ERRCODE = 'KV006';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        SELECT role INTO decider FROM users WHERE id = NEW.decided_by AND is_active AND role IN ('admin', 'treasury') FOR SHARE;
        IF decider IS NULL THEN
            RAISE EXCEPTION 'change % is decided by nobody who may', NEW.id USING ERRCODE = 'KV006';
        END IF;
        IF NEW.status = 'confirmed' THEN
            IF coalesce(NEW.change -> 'roles' ? decider, false) THEN
                RAISE EXCEPTION 'change % is confirmed by somebody who gains by it', NEW.id USING ERRCODE = 'KV006';
            END IF;
            NEW.applied_in := pg_current_xact_id();
        END IF;
    END IF;
    RETURN NEW;
END $$;
