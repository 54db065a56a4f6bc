-- Whether one officer is not enough to refund an order or a payment exception by mobile money, or to confirm the payee of a
-- refund. Who asks for a refund that is not opened yet is its requester and does not count; where that is not known, it is one of
-- two who decided.
CREATE OR REPLACE FUNCTION refund_needs_second(object uuid, asker uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    r      releases := release_terms('refund', object);
    opened boolean  := EXISTS (SELECT FROM refunds f WHERE f.id = object);
    voices int;
BEGIN
    IF NOT opened THEN
        r.requester_id := asker;
    END IF;
    voices := (SELECT count(*) FROM release_voices(r)) - CASE WHEN opened OR asker IS NOT NULL THEN 0 ELSE 1 END;
    RETURN release_officers(r, clock_timestamp()) > greatest(voices, 0);
END $$;
