-- An intent is written unused, and its columns say what its statement says. A caller never writes one for another user
-- than the one that its statement names.
CREATE OR REPLACE FUNCTION check_intent() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    said jsonb := convert_from(NEW.statement, 'UTF8')::jsonb;
BEGIN
    IF num_nonnulls(NEW.used_at, NEW.used_by, NEW.used_in, NEW.refused_at, NEW.refusal) > 0 THEN
        RAISE EXCEPTION 'intent % is written after its use', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF (said ->> 'id', said ->> 'kind', said ->> 'object_id', said -> 'by' ->> 'user_id', (said ->> 'created_at')::timestamptz, (said ->> 'expires_at')::timestamptz)
            IS DISTINCT FROM (NEW.id::text, NEW.kind, NEW.object_id::text, NEW.user_id::text, NEW.created_at, NEW.expires_at) THEN
        RAISE EXCEPTION 'intent % differs from its statement', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
