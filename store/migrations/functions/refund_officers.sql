-- How many officers have to approve a refund besides those who requested it, gave its address or dismissed a claim
-- that its payee was paid.
CREATE OR REPLACE FUNCTION refund_officers(f refunds) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
    rule approval_rules;
    need int := 0;
BEGIN
    SELECT * INTO STRICT rule FROM approval_rules WHERE object_type = 'refund';
    IF f.value > rule.two_above THEN
        need := 2;
    ELSIF f.value > rule.one_above OR f.addressed_by IS NOT NULL
        OR (f.exception_id IS NULL AND EXISTS (SELECT FROM order_payouts y WHERE y.id = f.order_id AND y.doubted)) THEN
        need := 1;
    END IF;
    RETURN need;
END $$;
