-- The relay never moves back: it would deliver events twice.
CREATE OR REPLACE FUNCTION keep_webhook_relay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.cursor < OLD.cursor THEN
        RAISE EXCEPTION 'the relay of events does not go back' USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
