-- A file comes with the key of its bytes, and a picture with the PDF that was made from it.
CREATE OR REPLACE FUNCTION check_file_whole() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM file_keys k WHERE k.file_id = NEW.id) THEN
        RAISE EXCEPTION 'file % has no key', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.content_type IN ('image/png', 'image/jpeg') AND NOT EXISTS (SELECT FROM files d WHERE d.original_id = NEW.id) THEN
        RAISE EXCEPTION 'picture % has no PDF', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
