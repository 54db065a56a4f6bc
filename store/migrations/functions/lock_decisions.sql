-- Has what officers decide alone be summed by one transaction at a time, until it ends: of two at the same moment the second
-- sees the first.
CREATE OR REPLACE FUNCTION lock_decisions() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('kivuko decisions of officers', 0))
$$;
