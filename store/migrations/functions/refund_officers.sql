-- How many officers have to approve a refund, by its value together with what officers return and what goes to its address,
-- what is still to go and what went within a day, besides those who requested it, gave its address or dismissed a claim that
-- its payee was paid.
CREATE OR REPLACE FUNCTION refund_officers(f refunds) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
    rule approval_rules;
    need int := 0;
    total numeric := f.value + (SELECT coalesce(sum(o.value), 0) FROM refunds o WHERE o.rail = 'chain' AND o.id <> f.id AND o.status <> 'failed'
        AND (o.requested_by IS NOT NULL OR o.addressed_by IS NOT NULL OR (o.address = f.address AND o.address <> '')) AND coalesce(o.completed_at, 'infinity') > clock_timestamp() - interval '24 hours');
BEGIN
    SELECT * INTO STRICT rule FROM approval_rules WHERE object_type = 'refund';
    IF total > rule.two_above THEN
        need := 2;
    ELSIF total > rule.one_above OR f.addressed_by IS NOT NULL
        OR (f.exception_id IS NULL AND EXISTS (SELECT FROM order_payouts y WHERE y.id = f.order_id AND y.doubted)) THEN
        need := 1;
    END IF;
    RETURN need;
END $$;
