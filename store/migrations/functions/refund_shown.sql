-- The bank's reference of a line that shows the payment of a refund by bank. NULL when no statement shows one.
CREATE OR REPLACE FUNCTION refund_shown(f refunds) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT payment_shown(f.bank_hold_id, f.amount, f.account_number, 'bank_refund', f.id)
$$;
