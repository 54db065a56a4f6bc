-- A key of the ledger is used once, in whatever month.
CREATE OR REPLACE FUNCTION keep_entry_keys() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO ledger_keys (key, entry_id) SELECT key, id FROM written;
    RETURN NULL;
END $$;
