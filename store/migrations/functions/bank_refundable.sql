-- Why the money of a payment exception can't go back by bank; NULL when it can: shillings that a bank's line, the
-- operator's list, a proven collection or the books of a deposit know to have come, and that no source disputes. Those of an order go back to
-- the payer's phone.
CREATE OR REPLACE FUNCTION bank_refundable(x payment_exceptions) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN x.asset <> 'KES' THEN 'is crypto'
        WHEN x.order_id IS NOT NULL THEN 'belongs to an order'
        WHEN x.kind IN ('paid_twice', 'reconciliation') OR EXISTS (SELECT FROM bank_lines l WHERE l.id = x.line_id AND l.side = 'debit') THEN 'did not come in'
        WHEN EXISTS (SELECT FROM payment_attempts a WHERE a.id = x.attempt_id AND a.direction = 'payout') THEN 'did not come in'
        WHEN x.line_id IS NULL
            AND NOT EXISTS (SELECT FROM c2b_payments p WHERE p.exception_id = x.id AND (p.receipt, p.amount) = (x.receipt, x.amount) AND p.listed_at IS NOT NULL)
            AND NOT EXISTS (SELECT FROM collections c WHERE (c.receipt, c.attempt_id) = (x.receipt, x.attempt_id) AND c.amount >= x.amount)
            AND NOT EXISTS (SELECT FROM otc_deposits d WHERE d.id = x.deposit_id AND x.receipt = 'otc_deposit:' || d.id AND d.received_amount = x.amount
                AND d.status IN ('rejected', 'cancelled', 'expired'))
            THEN 'is not known to have come'
        WHEN EXISTS (SELECT FROM c2b_payments p WHERE p.disputed AND (p.exception_id = x.id OR p.receipt = x.receipt
            OR p.receipt = (SELECT d.momo_receipt FROM otc_deposits d WHERE d.id = x.deposit_id AND x.receipt = 'otc_deposit:' || d.id))) THEN 'is disputed by the mobile money operator'
        WHEN EXISTS (SELECT FROM bank_lines l WHERE l.id = x.line_id AND line_typed(l, NULL)) THEN 'is that of a deposit whose reference officers typed'
    END
$$;
