-- Whether one officer's receipt is not enough to settle the mobile money payout of an order, a refund or a withdrawal: above the
-- value from which a bank payout needs two officers. Another receipt says that it was paid once more, so the payments that
-- are booked already count with it. A receipt that is booked needs no officer, nor does one that two have attested.
-- Without the rule, every amount needs two, and so does every payout that a put-back database may have lost, and every withdrawal.
CREATE OR REPLACE FUNCTION receipt_needs_second(object uuid, named text) RETURNS boolean LANGUAGE sql STABLE AS $$
    WITH attempts AS (
        SELECT a.id, a.receipt FROM payment_attempts a
        WHERE a.object_id = object AND a.direction = 'payout'
    ), booked AS (
        SELECT a.receipt FROM attempts a WHERE a.receipt <> ''
        UNION SELECT f.receipt FROM refunds f WHERE f.id = object AND f.receipt <> ''
        UNION SELECT x.receipt FROM payment_exceptions x JOIN attempts a ON a.id = x.attempt_id WHERE x.kind = 'paid_twice'
    )
    SELECT (payout_is_lost(object) OR EXISTS (SELECT FROM otc_withdrawals w WHERE w.id = object) OR EXISTS (SELECT FROM (
                SELECT p.amount FROM order_payouts p WHERE p.id = object AND p.rail = 'momo'
                UNION ALL SELECT f.amount FROM refunds f WHERE f.id = object AND f.rail = 'momo') o
            WHERE o.amount * (1 + (SELECT count(*) FROM booked)) + attested_alone(object) > coalesce((SELECT r.one_above FROM approval_rules r WHERE r.object_type = 'bank_payout'), 0)))
        AND NOT EXISTS (SELECT FROM payout_attestations w WHERE w.object_id = object AND w.receipt = named)
        AND NOT EXISTS (SELECT FROM booked b WHERE b.receipt = named)
$$;
