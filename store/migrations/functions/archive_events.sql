-- Takes the oldest month out of the event log when all of its events are older than so many whole months, and returns it; otherwise NULL. Its
-- part stays as a table that no login can change. Deliveries need their events: as long as one is there, or the relay has not read the month,
-- it stays. The keys of its events stay for ever.
CREATE OR REPLACE FUNCTION archive_events(kept int) RETURNS date LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '800ms' AS $$
DECLARE
    m       months;
    newest  bigint;
    removed date := this_month() - make_interval(months => kept);
BEGIN
    IF kept IS NULL OR kept < 3 THEN
        RAISE EXCEPTION 'events stay in the log for at least three months' USING ERRCODE = 'KV002';
    END IF;
    LOCK TABLE months IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO m FROM months WHERE archived_at IS NULL ORDER BY month LIMIT 1;
    SELECT max(cursor) INTO newest FROM event_keys WHERE cursor >= m.cursor_from AND cursor < m.cursor_to;
    IF m.month >= removed OR NOT EXISTS (SELECT FROM months WHERE month > m.month AND begun_at IS NOT NULL)
        OR (SELECT at FROM events WHERE cursor = newest) >= removed::timestamp AT TIME ZONE 'Africa/Nairobi' THEN
        RETURN NULL;
    END IF;
    IF (SELECT cursor FROM webhook_relay) < newest OR EXISTS (SELECT FROM webhook_deliveries WHERE event_cursor >= m.cursor_from AND event_cursor < m.cursor_to) THEN
        RAISE EXCEPTION 'webhook deliveries still need the events of %', to_char(m.month, 'YYYY-MM') USING ERRCODE = 'KV001';
    END IF;
    EXECUTE format('ALTER TABLE events DETACH PARTITION %I', 'events' || to_char(m.month, '_YYYY_MM'));
    UPDATE months SET archived_at = now() WHERE month = m.month;
    RETURN m.month;
END $$;
