-- Two persons agree to values above which officers are asked for. The rule of payments by bank has one value alone.
CREATE OR REPLACE FUNCTION guard_approval_rule() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.object_type <> OLD.object_type OR NOT EXISTS (SELECT FROM control_changes c,
                LATERAL (SELECT c.change -> 'approvals' -> NEW.object_type AS agreed) a
            WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'house_limits'
                AND coalesce(a.agreed ->> 'one_above', a.agreed ->> 'two_above')::numeric = NEW.one_above
                AND (a.agreed ->> 'two_above')::numeric = NEW.two_above) THEN
        RAISE EXCEPTION 'nobody confirmed higher approval values' USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
