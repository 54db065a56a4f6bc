-- Whether one officer is not enough to refund an order or a payment exception by mobile money, or to confirm the payee of a
-- refund. Of two who decided about a refund that is not opened yet, one will be who requests it, and does not count.
CREATE OR REPLACE FUNCTION refund_needs_second(object uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT release_officers(t, clock_timestamp()) > (SELECT greatest(count(*) - CASE WHEN f.id IS NULL THEN 1 ELSE 0 END, 0) FROM release_voices(t))
    FROM release_terms('refund', object) t LEFT JOIN refunds f ON f.id = object
$$;
