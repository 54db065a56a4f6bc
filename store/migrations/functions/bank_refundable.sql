-- Why the money of a payment exception can't go back by bank; NULL when it can: shillings that came, and that no source disputes. Those of an
-- order go back to the payer's phone.
CREATE OR REPLACE FUNCTION bank_refundable(x payment_exceptions) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN x.asset <> 'KES' THEN 'is crypto'
        WHEN x.order_id IS NOT NULL THEN 'belongs to an order'
        WHEN x.kind IN ('paid_twice', 'reconciliation') OR EXISTS (SELECT FROM bank_lines l WHERE l.id = x.line_id AND l.side = 'debit') THEN 'did not come in'
        WHEN EXISTS (SELECT FROM payment_attempts a WHERE a.id = x.attempt_id AND a.direction = 'payout') THEN 'did not come in'
        WHEN EXISTS (SELECT FROM c2b_payments p WHERE p.exception_id = x.id AND p.disputed) THEN 'is disputed by the mobile money operator'
        WHEN EXISTS (SELECT FROM bank_lines l WHERE l.id = x.line_id AND line_typed(l, NULL)) THEN 'is that of a deposit whose reference officers typed'
    END
$$;
