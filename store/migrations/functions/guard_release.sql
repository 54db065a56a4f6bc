-- A database is released by two officers, who compared its books with a report of the operator. The first release is that of
-- a database that has sent nothing yet, but for the prompt that is being stored.
CREATE OR REPLACE FUNCTION guard_release() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.identity <> database_identity() THEN
        RAISE EXCEPTION 'the release is of another database' USING ERRCODE = 'KV006';
    END IF;
    IF NEW.change_id IS NULL THEN
        IF EXISTS (SELECT FROM database_releases) OR (SELECT count(*) FROM (SELECT FROM payment_attempts LIMIT 2) a) > 1 THEN
            RAISE EXCEPTION 'no second officer confirmed the release of this database' USING ERRCODE = 'KV006';
        END IF;
    ELSIF NOT EXISTS (SELECT FROM control_changes c JOIN float_reports f ON f.ticket = c.change ->> 'report'
            WHERE c.id = NEW.change_id AND c.applied_in = pg_current_xact_id() AND c.kind = 'database_release'
                AND c.change ->> 'database' = NEW.identity AND f.received_at >= c.proposed_at - interval '1 hour') THEN
        RAISE EXCEPTION 'change % does not release this database', NEW.change_id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
