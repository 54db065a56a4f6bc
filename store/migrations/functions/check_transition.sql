-- Refuses a status change that the trigger's state machine does not have. Terminal states have no outgoing transition,
-- so they stay terminal.
CREATE OR REPLACE FUNCTION check_transition() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    machine_name text := TG_ARGV[0];
    was text := '';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        was := OLD.status;
    END IF;
    IF machine_name = 'order' THEN
        machine_name := CASE WHEN NEW.order_type LIKE 'ON\_RAMP%' THEN 'on_ramp_order' ELSE 'off_ramp_order' END;
    END IF;
    IF NOT EXISTS (SELECT FROM state_transitions WHERE machine = machine_name AND from_state = was AND to_state = NEW.status) THEN
        RAISE EXCEPTION '% % can not go from % to %', machine_name, NEW.id, was, NEW.status USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
