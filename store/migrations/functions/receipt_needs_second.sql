-- Whether one officer's receipt is not enough to settle the mobile money payout of an order or a refund: above the
-- value from which a bank payout needs two officers. A receipt that the provider has proven needs no officer, nor does
-- one that two have attested already. Another receipt of a payout that is completed says that it was paid twice, which
-- needs as many. Without the rule, every amount needs two.
CREATE OR REPLACE FUNCTION receipt_needs_second(object uuid, named text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM (
                SELECT p.amount FROM order_payouts p WHERE p.id = object AND p.rail = 'momo'
                UNION ALL SELECT f.amount FROM refunds f WHERE f.id = object AND f.rail = 'momo') o
            WHERE o.amount > coalesce((SELECT r.one_above FROM approval_rules r WHERE r.object_type = 'bank_payout'), 0))
        AND NOT EXISTS (SELECT FROM payout_attestations w WHERE coalesce(w.refund_id, w.order_id) = object AND w.receipt = named)
        AND NOT EXISTS (SELECT FROM payment_attempts a WHERE a.receipt = named AND a.direction = 'payout' AND coalesce(a.refund_id, a.order_id) = object)
$$;
