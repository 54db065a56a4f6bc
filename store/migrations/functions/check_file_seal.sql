-- A new seal of a file's key follows the one before it, under another master key.
CREATE OR REPLACE FUNCTION check_file_seal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM file_keys k WHERE k.file_id = NEW.file_id AND k.seal = NEW.seal - 1 AND k.master_key <> NEW.master_key) THEN
        RAISE EXCEPTION 'seal % of the key of file % does not follow the one before', NEW.seal, NEW.file_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
