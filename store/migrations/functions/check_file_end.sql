-- Nobody ends a file before its time, and not one that came into use just now, nor one whose use a database that was put back may lack.
CREATE OR REPLACE FUNCTION check_file_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT database_released() OR NOT file_due(NEW.id, least(NEW.deleted_at, now())) THEN
        RAISE EXCEPTION 'file % is to be kept', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
