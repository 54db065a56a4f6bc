-- The key of a file goes only after its bytes.
CREATE OR REPLACE FUNCTION check_file_purged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM files f WHERE f.id = OLD.file_id AND f.purged_at IS NOT NULL) THEN
        RAISE EXCEPTION 'file % still needs its key', OLD.file_id USING ERRCODE = 'KV002';
    END IF;
    RETURN OLD;
END $$;
