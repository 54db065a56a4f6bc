-- An entry of the ledger that names a journal entry is that one's.
CREATE OR REPLACE FUNCTION check_journal_source() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM journal_entries j WHERE j.id = NEW.object_id AND NEW.key = 'journal:' || j.id AND NEW.kind = 'journal.' || j.kind) THEN
        RAISE EXCEPTION 'entry % is no journal entry', NEW.key USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
