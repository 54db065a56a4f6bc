-- A new seal of a file's key follows the one before it, under another master key, and under none that opens wallets: who may open files
-- would open those too. None comes after the file was purged, nor at the same time: its row is locked, for which a process has no right
-- of its own.
CREATE OR REPLACE FUNCTION check_file_seal() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM files f WHERE f.id = NEW.file_id AND f.purged_at IS NULL FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'file % was purged and needs no key', NEW.file_id USING ERRCODE = 'KV001';
    END IF;
    IF EXISTS (SELECT FROM wallet_keys w WHERE w.master_key = NEW.master_key) THEN
        RAISE EXCEPTION 'the key of file % is sealed by a master key of wallets', NEW.file_id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.seal > 1 AND NOT EXISTS (SELECT FROM file_keys k WHERE k.file_id = NEW.file_id AND k.seal = NEW.seal - 1 AND k.master_key <> NEW.master_key) THEN
        RAISE EXCEPTION 'seal % of the key of file % does not follow the one before', NEW.seal, NEW.file_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
