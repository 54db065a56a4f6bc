-- The day in Kenya on which mobile money was paid: as the operator's statement says, which decides over a notice that came first, because that
-- one is not signed. Without a row of the statement it is that of the first report.
CREATE OR REPLACE FUNCTION paid_on(paid text) RETURNS date LANGUAGE sql STABLE AS $$
    SELECT (coalesce((SELECT r.paid_at FROM momo_receipts r WHERE r.receipt = paid AND r.channel = 'statement'),
        (SELECT p.paid_at FROM c2b_payments p WHERE p.receipt = paid)) AT TIME ZONE 'Africa/Nairobi')::date
$$;
