-- An object has one event of each number, in whatever month.
CREATE OR REPLACE FUNCTION keep_event_keys() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO event_keys (cursor, object_type, object_id, sequence) SELECT cursor, object_type, object_id, sequence FROM written;
    RETURN NULL;
END $$;
