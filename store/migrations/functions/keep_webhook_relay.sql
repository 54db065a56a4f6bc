-- The relay never moves back: it would deliver events twice.
CREATE OR REPLACE FUNCTION keep_webhook_relay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.cursor < OLD.cursor THEN
        RAISE EXCEPTION 'the cursor of the event relay can''t move back' USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
