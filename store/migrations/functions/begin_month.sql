-- Begins this month, and returns it; NULL when it has begun or has no parts. From then on positions of the logs and ids of entries come from
-- its ranges. Where it is not called, the parts of the month before take what is written. Its parts were made by a transaction that has
-- committed: a sequence does not go back when a transaction is undone.
--
-- No writer may have a position and not have committed when the clock is set forward: its rows would come into the log behind readers who have
-- passed them. Each that has one has read log_clock, and keeps a lock on it to the end of the transaction.
CREATE OR REPLACE FUNCTION begin_month() RETURNS date LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '800ms' AS $$
DECLARE
    m      months;
    newest bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a month begins in a transaction that sees what was committed meanwhile' USING ERRCODE = 'KV002';
    END IF;
    IF (SELECT begun_at FROM months WHERE month <= this_month() AND made_at < now() ORDER BY month DESC LIMIT 1) IS NOT NULL THEN
        RETURN NULL; -- without the lock
    END IF;
    LOCK TABLE log_clock IN ACCESS EXCLUSIVE MODE;
    SELECT * INTO m FROM months WHERE month <= this_month() AND made_at < now() ORDER BY month DESC LIMIT 1;
    IF m.begun_at IS NOT NULL THEN
        RETURN NULL;
    END IF;
    -- Also those who have a number and no position yet get one from here on. Positions that ran on into the month stay as they are.
    UPDATE log_clock SET base = (m.cursor_from >> 20) - pg_snapshot_xmin(pg_current_snapshot())::text::bigint
        WHERE base + pg_snapshot_xmax(pg_current_snapshot())::text::bigint < m.cursor_from >> 20;
    SELECT last_value INTO newest FROM ledger_entries_id_seq;
    IF newest < m.entry_from THEN
        PERFORM setval('ledger_entries_id_seq', m.entry_from, false);
    END IF;
    UPDATE months SET begun_at = now() WHERE month <= m.month AND begun_at IS NULL;
    RETURN m.month;
END $$;
