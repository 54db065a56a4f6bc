-- A journal entry is booked with the lines that it means, in its own transaction. The file that it names is kept because of it, and the
-- statement line that it names is matched with it; a correction without one frees the line of the entry that it undoes, because that entry was a mistake.
CREATE OR REPLACE FUNCTION check_journal_booking() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM ledger_entries l WHERE l.id = entry_of('journal:' || NEW.id) AND l.kind = 'journal.' || NEW.kind
            AND (SELECT array_agg((a.code, n.amount::numeric) ORDER BY a.code) FROM ledger_lines n JOIN ledger_accounts a ON a.id = n.account_id WHERE n.entry_id = l.id)
                = (SELECT array_agg((j.code, j.amount) ORDER BY j.code) FROM journal_lines(NEW) j)) THEN
        RAISE EXCEPTION 'journal entry % is not booked as it says', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.line_id IS NOT NULL AND NOT EXISTS (SELECT FROM bank_lines l WHERE l.id = NEW.line_id AND l.object_type = 'journal_entry' AND l.object_id = NEW.id) THEN
        RAISE EXCEPTION 'line % is not matched with journal entry %', NEW.line_id, NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.file_id IS NOT NULL AND NOT EXISTS (SELECT FROM files f JOIN file_uses u ON u.file_id = f.id AND u.object_type = 'journal_entry' AND u.object_id = NEW.id
            WHERE f.id = NEW.file_id AND f.purpose = 'exception_evidence') THEN
        RAISE EXCEPTION 'file % is not kept as evidence of journal entry %', NEW.file_id, NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.corrects IS NOT NULL AND NEW.line_id IS NULL
        AND EXISTS (SELECT FROM bank_lines l WHERE l.object_type = 'journal_entry' AND l.object_id = NEW.corrects) THEN
        RAISE EXCEPTION 'a line is still matched with journal entry %', NEW.corrects USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
