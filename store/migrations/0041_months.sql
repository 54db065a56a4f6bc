-- +goose Up
-- The event log and the ledger lie in parts, one for each month (decision 68). The log is cut by cursor and the ledger by the id of the
-- entry, so that their keys stay as they were. A month is a range of both, which is made months before it begins.

-- From begin_month on, positions of the logs and ids of entries are taken from a month's own range. What was written before there were
-- months lies in the parts of 2000-01.
CREATE TABLE months (
    month       date        PRIMARY KEY CHECK (extract(day FROM month) = 1),
    cursor_from bigint      NOT NULL UNIQUE,
    cursor_to   bigint      NOT NULL CHECK (cursor_to > cursor_from),
    entry_from  bigint      NOT NULL UNIQUE,
    entry_to    bigint      NOT NULL CHECK (entry_to > entry_from),
    made_at     timestamptz NOT NULL,
    begun_at    timestamptz,
    archived_at timestamptz -- its events are no longer in the log
);
CALL never_removed('months');
CALL same_columns('months', 'month, cursor_from, cursor_to, entry_from, entry_to, made_at');
CALL set_once('months', 'begun_at, archived_at');

-- The keys that are unique over all months, which no index of a table in parts can be. Only triggers write them.
ALTER TABLE webhook_deliveries DROP CONSTRAINT webhook_deliveries_event_cursor_fkey;
ALTER TABLE events DROP CONSTRAINT events_sequence_key;
CREATE TABLE event_keys (
    cursor      bigint PRIMARY KEY,
    object_type text   NOT NULL,
    object_id   uuid   NOT NULL,
    sequence    bigint NOT NULL,
    CONSTRAINT events_sequence_key UNIQUE (object_type, object_id, sequence)
);
INSERT INTO event_keys SELECT cursor, object_type, object_id, sequence FROM events ORDER BY cursor;
CALL append_only('event_keys');
-- An archived event keeps its key, so the reference doesn't hinder its archiving; archive_events looks for deliveries.
ALTER TABLE webhook_deliveries ADD CONSTRAINT webhook_deliveries_event_cursor_fkey FOREIGN KEY (event_cursor) REFERENCES event_keys (cursor);
CREATE INDEX webhook_deliveries_event_idx ON webhook_deliveries (event_cursor);

ALTER TABLE ledger_lines DROP CONSTRAINT ledger_lines_entry_id_fkey;
ALTER TABLE ledger_entries DROP CONSTRAINT ledger_entries_key_key;
CREATE TABLE ledger_keys (
    key      text   NOT NULL,
    entry_id bigint NOT NULL,
    CONSTRAINT ledger_entries_key_key PRIMARY KEY (key)
);
INSERT INTO ledger_keys SELECT key, id FROM ledger_entries ORDER BY id;
CALL append_only('ledger_keys');

-- by_parts makes a table the first part of a new one of its name. Its triggers, whose definitions name it, become those of the new table.
-- +goose StatementBegin
CREATE PROCEDURE by_parts(t text, cut text) LANGUAGE plpgsql AS $$
DECLARE
    part     text   := t || '_2000_01';
    triggers text[] := ARRAY(SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = t::regclass AND NOT tgisinternal ORDER BY tgname);
    x        record;
BEGIN
    FOR x IN SELECT tgname FROM pg_trigger WHERE tgrelid = t::regclass AND NOT tgisinternal LOOP
        EXECUTE format('DROP TRIGGER %I ON %I', x.tgname, t);
    END LOOP;
    FOR x IN SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = t::regclass LOOP
        EXECUTE format('ALTER INDEX %I RENAME TO %I', x.relname, replace(x.relname, t, part));
    END LOOP;
    EXECUTE format('ALTER TABLE %I RENAME TO %I', t, part);
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (%I)', t, part, cut);
    FOR i IN 1 .. cardinality(triggers) LOOP
        EXECUTE triggers[i];
    END LOOP;
END $$;
-- +goose StatementEnd

ALTER TABLE ledger_entries ALTER COLUMN id DROP IDENTITY;
ALTER TABLE ledger_lines ALTER COLUMN id DROP IDENTITY;
DROP INDEX ledger_lines_entry_idx;
ALTER TABLE ledger_lines DROP CONSTRAINT ledger_lines_pkey;
ALTER TABLE ledger_lines ADD CONSTRAINT ledger_lines_pkey PRIMARY KEY (entry_id, id);
CALL by_parts('events', 'cursor');
CALL by_parts('ledger_entries', 'id');
CALL by_parts('ledger_lines', 'entry_id');
DROP PROCEDURE by_parts(text, text);

ALTER TABLE events ADD CONSTRAINT events_pkey PRIMARY KEY (cursor);
CREATE INDEX events_owner_idx ON events (owner_id, cursor) WHERE owner_id IS NOT NULL;
CREATE INDEX events_vendor_idx ON events (vendor_id, cursor) WHERE vendor_id IS NOT NULL;
CREATE TRIGGER events_keyed AFTER INSERT ON events REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION keep_event_keys();

ALTER TABLE ledger_entries ADD CONSTRAINT ledger_entries_pkey PRIMARY KEY (id);
ALTER TABLE ledger_entries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY;
CREATE INDEX ledger_entries_object_idx ON ledger_entries (object_id) WHERE object_id IS NOT NULL;
CREATE TRIGGER ledger_entries_keyed AFTER INSERT ON ledger_entries REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION keep_entry_keys();

-- A line lies in the month of its entry, which also finds it there.
ALTER TABLE ledger_lines ADD CONSTRAINT ledger_lines_pkey PRIMARY KEY (entry_id, id);
ALTER TABLE ledger_lines ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY;
CREATE INDEX ledger_lines_account_idx ON ledger_lines (account_id, id);
ALTER TABLE ledger_lines ADD CONSTRAINT ledger_lines_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger_accounts (id);

-- add_part makes a table, unless it is there, and puts it into another one as a part. Rows are written only through the whole: its statement triggers don't see those that are
-- written into a part.
-- +goose StatementBegin
CREATE PROCEDURE add_part(t text, part text, bounds text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE IF NOT EXISTS %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', part, t);
    EXECUTE format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_direct()', part || '_direct', part);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I %s', t, part, bounds);
END $$;
-- +goose StatementEnd

-- The first parts end well after what there is, and their months are only made when the schedule runs. What lies outside of all months, as
-- after the move to a server with much higher numbers of transactions, is in the rest.
-- +goose StatementBegin
DO $$
DECLARE
    m months := (date '2000-01-01', 0, ((SELECT greatest(base, (SELECT max(cursor) >> 20 FROM event_keys)) FROM log_clock) + pg_current_xact_id()::text::bigint + (1 << 24)) << 20,
        0, (((SELECT coalesce(max(entry_id), 0) FROM ledger_keys) >> 36) + 1) << 36, now(), now(), NULL);
    t text;
BEGIN
    INSERT INTO months SELECT m.*;
    PERFORM setval('ledger_entries_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM ledger_entries_2000_01), false),
        setval('ledger_lines_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM ledger_lines_2000_01), false);
    FOREACH t IN ARRAY ARRAY['events', 'ledger_entries', 'ledger_lines'] LOOP
        CALL add_part(t, t || '_2000_01', format('FOR VALUES FROM (MINVALUE) TO (%s)', CASE t WHEN 'events' THEN m.cursor_to ELSE m.entry_to END));
        CALL add_part(t, t || '_rest', 'DEFAULT');
    END LOOP;
END $$;
-- +goose StatementEnd
