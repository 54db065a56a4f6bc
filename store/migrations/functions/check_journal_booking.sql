-- A journal entry is booked with the lines that it means, in its own transaction.
CREATE OR REPLACE FUNCTION check_journal_booking() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM ledger_entries l WHERE l.key = 'journal:' || NEW.id AND l.kind = 'journal.' || NEW.kind
            AND (SELECT array_agg((a.code, n.amount::numeric) ORDER BY a.code) FROM ledger_lines n JOIN ledger_accounts a ON a.id = n.account_id WHERE n.entry_id = l.id)
                = (SELECT array_agg((j.code, j.amount) ORDER BY j.code) FROM journal_lines(NEW) j)) THEN
        RAISE EXCEPTION 'journal entry % is not booked as it says', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
