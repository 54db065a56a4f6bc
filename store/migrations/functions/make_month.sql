-- Makes the parts of the next month and returns it; NULL when this month and the four after it, or after the month where positions are
-- by now, have theirs. Whoever calls it can make no others. A month gets twice as many positions as any had, so that positions seldom run on
-- into the next one, which harms nothing; not many more, because clients read them as numbers, which are exact up to 2^53.
CREATE OR REPLACE FUNCTION make_month() RETURNS date LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '800ms' AS $$
DECLARE
    last   months;
    m      months;
    n      bigint; -- no transaction has a higher position
    most   bigint;
    newest bigint := (SELECT coalesce(max(id), 0) FROM ledger_entries);
    t      text;
BEGIN
    LOCK TABLE months IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO last FROM months ORDER BY month DESC LIMIT 1;
    SELECT base + pg_snapshot_xmax(pg_current_snapshot())::text::bigint INTO n FROM log_clock;
    IF last.month >= greatest(this_month(), (SELECT max(month) FROM months WHERE cursor_from <= n << 20)) + interval '4 months' THEN
        RETURN NULL;
    END IF;
    -- Attaching a part of the lines locks the accounts, because lines refer to them. A posting that has changed an account waits for the parts:
    -- taken after them, this lock and the posting would wait for each other.
    LOCK TABLE ledger_accounts IN SHARE ROW EXCLUSIVE MODE;
    m.month := greatest(last.month + interval '1 month', this_month());
    SELECT max((SELECT max(k.cursor) FROM event_keys k WHERE k.cursor >= o.cursor_from AND k.cursor < o.cursor_to)
        - (SELECT min(k.cursor) FROM event_keys k WHERE k.cursor >= o.cursor_from AND k.cursor < o.cursor_to)) >> 20 INTO most FROM months o WHERE o.begun_at IS NOT NULL AND o.month > '2000-01-01';
    m.cursor_from := greatest(last.cursor_to, CASE WHEN n << 20 >= last.cursor_to THEN n + (1 << 20) ELSE 0 END << 20);
    m.cursor_to := m.cursor_from + (greatest(1 << 24, 2 * most) << 20);
    m.entry_from := CASE WHEN newest < last.entry_to THEN last.entry_to ELSE ((newest >> 36) + 1) << 36 END;
    m.entry_to := m.entry_from + (1::bigint << 36);
    FOREACH t IN ARRAY ARRAY['events', 'ledger_entries', 'ledger_lines'] LOOP
        CALL add_part(t, t || to_char(m.month, '_YYYY_MM'), CASE t WHEN 'events' THEN format('FOR VALUES FROM (%s) TO (%s)', m.cursor_from, m.cursor_to)
            ELSE format('FOR VALUES FROM (%s) TO (%s)', m.entry_from, m.entry_to) END);
    END LOOP;
    INSERT INTO months (month, cursor_from, cursor_to, entry_from, entry_to, made_at) VALUES (m.month, m.cursor_from, m.cursor_to, m.entry_from, m.entry_to, now());
    RETURN m.month;
END $$;
