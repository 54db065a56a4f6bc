-- Notes the transaction that uses an intent, whatever its writer says.
CREATE OR REPLACE FUNCTION stamp_intent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.used_in := CASE WHEN OLD.used_at IS NULL AND NEW.used_at IS NOT NULL THEN pg_current_xact_id() ELSE OLD.used_in END;
    RETURN NEW;
END $$;
