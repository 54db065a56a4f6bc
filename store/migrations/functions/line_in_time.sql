-- Reports whether a statement's line may be that of a payout by its day: the bank did not pay before there was something to pay.
CREATE OR REPLACE FUNCTION line_in_time(l bank_lines, type text, object uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT CASE type
        WHEN 'bank_payout' THEN EXISTS (SELECT FROM orders o WHERE o.id = object AND l.value_date >= (o.created_at AT TIME ZONE 'Africa/Nairobi')::date)
        WHEN 'otc_withdrawal' THEN EXISTS (SELECT FROM otc_withdrawals w WHERE w.id = object AND l.value_date >= (w.executed_at AT TIME ZONE 'Africa/Nairobi')::date)
        WHEN 'bank_refund' THEN EXISTS (SELECT FROM refunds f WHERE f.id = object AND l.value_date >= (f.begun_at AT TIME ZONE 'Africa/Nairobi')::date)
        ELSE true END
$$;
