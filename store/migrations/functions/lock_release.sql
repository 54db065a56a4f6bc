-- Locks the running sums of a release until its transaction ends: alone when it is announced and judged in one transaction,
-- otherwise together with others, which are announced before they are judged.
CREATE OR REPLACE FUNCTION lock_release(r releases) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    key bigint;
BEGIN
    FOR key IN SELECT DISTINCT hashtextextended('kivuko release ' || x, 0) AS k
        FROM unnest(ARRAY[r.owner_id::text, r.wallet_id::text, r.requester_id::text, r.recipient]) x WHERE x IS NOT NULL ORDER BY k
    LOOP
        IF r.purpose = 'funding' THEN
            PERFORM pg_advisory_xact_lock(key);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(key);
        END IF;
    END LOOP;
END $$;
