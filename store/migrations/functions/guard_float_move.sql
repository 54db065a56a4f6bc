-- A movement above the value at which a transfer needs an officer requires a second officer's confirmation.
CREATE OR REPLACE FUNCTION guard_float_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.change_id IS NULL AND NEW.amount > (SELECT one_above FROM approval_rules WHERE object_type = 'transfer') THEN
        RAISE EXCEPTION 'no second officer confirmed moving % of float', NEW.amount USING ERRCODE = 'KV006';
    END IF;
    IF NEW.change_id IS NOT NULL AND NOT EXISTS (SELECT FROM control_changes c WHERE c.id = NEW.change_id AND c.kind = 'float_move'
            AND c.applied_in = pg_current_xact_id() AND (c.change ->> 'amount')::numeric = NEW.amount AND c.proposed_by = NEW.asked_by) THEN
        RAISE EXCEPTION 'change % is not about moving % of float', NEW.change_id, NEW.amount USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
