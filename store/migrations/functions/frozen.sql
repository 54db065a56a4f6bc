-- Reports whether outgoing payments are frozen. It keeps a shared lock until the transaction ends, and a freeze takes the
-- lock alone: what passed before a freeze has committed when the freeze begins, and nothing passes after it.
CREATE OR REPLACE FUNCTION frozen() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('kivuko freeze', 0));
    RETURN EXISTS (SELECT FROM freezes WHERE lifted_at IS NULL);
END $$;
