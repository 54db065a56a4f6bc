-- The bank's reference of a line that shows the payment of an order by bank. NULL when no statement shows one.
CREATE OR REPLACE FUNCTION payout_shown(p order_payouts) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT payment_shown(p.hold_id, p.amount, o.beneficiary ->> 'AccountNumber', 'bank_payout', p.id) FROM orders o WHERE o.id = p.id
$$;
