-- A row that lets more money pass is written only in the transaction in which a second officer confirmed exactly it. The
-- arguments are the kind of the change and the field of its terms that names the row.
CREATE OR REPLACE FUNCTION guard_two_officers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM control_changes c WHERE c.kind = TG_ARGV[0] AND c.applied_in = pg_current_xact_id() AND c.change ->> TG_ARGV[1] = NEW.id::text;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed row % of %', NEW.id, TG_TABLE_NAME USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
