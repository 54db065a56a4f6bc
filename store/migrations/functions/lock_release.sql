-- Locks the running sums of a release until its transaction ends: together with other transfers, which are announced before
-- they are judged, and alone for the others, which may be judged in the transaction that announces them. One that is in no sum
-- locks none.
CREATE OR REPLACE FUNCTION lock_release(r releases) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    key bigint;
BEGIN
    FOR key IN SELECT DISTINCT hashtextextended('kivuko release ' || x, 0) AS k
        FROM unnest(ARRAY[r.owner_id::text, r.source, r.requester_id::text, r.recipient]) x WHERE x IS NOT NULL AND r.exempt = '' ORDER BY k
    LOOP
        IF r.purpose = 'transfer' THEN
            PERFORM pg_advisory_xact_lock_shared(key);
        ELSE
            PERFORM pg_advisory_xact_lock(key);
        END IF;
    END LOOP;
END $$;
