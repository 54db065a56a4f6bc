-- Who asks for a verb on an object: by an intent that this transaction used. NULL for nobody.
CREATE OR REPLACE FUNCTION intent_asker(object uuid, verb text) RETURNS uuid LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT i.user_id FROM intents i WHERE i.object_id = object AND i.kind = verb AND i.used_in = pg_current_xact_id() LIMIT 1);
END $$;
