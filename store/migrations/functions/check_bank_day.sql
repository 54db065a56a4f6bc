-- An entry of a day is the next one of it, and exactly what two officers agreed.
CREATE OR REPLACE FUNCTION check_bank_day() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko bank days', 0));
    IF NEW.entry <> (SELECT coalesce(max(d.entry), 0) + 1 FROM bank_days d WHERE d.day = NEW.day) THEN
        RAISE EXCEPTION 'the entry of % is not the next one of the day', NEW.day USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM control_changes c WHERE c.id = NEW.change_id AND c.kind = 'bank_day' AND c.applied_in = pg_current_xact_id()
        AND (c.change ->> 'day')::date = NEW.day AND (c.change ->> 'is_open')::boolean = NEW.is_open AND c.change ->> 'name' = NEW.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed bank day %', NEW.day USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
