-- Higher approval values need two officers. The rule for bank payouts has only one value.
CREATE OR REPLACE FUNCTION guard_approval_rule() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.object_type <> OLD.object_type OR NOT EXISTS (SELECT FROM control_changes c,
                LATERAL (SELECT c.change -> 'approvals' -> NEW.object_type AS agreed) a
            WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'house_limits'
                AND coalesce(a.agreed ->> 'one_above', a.agreed ->> 'two_above')::numeric = NEW.one_above
                AND (a.agreed ->> 'two_above')::numeric = NEW.two_above) THEN
        RAISE EXCEPTION 'no second officer confirmed higher approval values' USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
