-- The terms of an intent that this transaction, or an earlier one, used to open an object. It fails where there is none:
-- nothing is opened that nobody asked for.
CREATE OR REPLACE FUNCTION intent_terms(intent uuid, wanted text, object uuid, asker uuid) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    said jsonb;
BEGIN
    SELECT coalesce(convert_from(i.statement, 'UTF8')::jsonb -> 'terms', '{}') INTO said FROM intents i
        WHERE i.id = intent AND i.kind = wanted AND i.object_id = object AND i.user_id = asker AND i.used_at IS NOT NULL AND i.refused_at IS NULL;
    IF said IS NULL THEN
        RAISE EXCEPTION 'nobody asked for % by intent %', object, intent USING ERRCODE = 'KV002';
    END IF;
    RETURN said;
END $$;
