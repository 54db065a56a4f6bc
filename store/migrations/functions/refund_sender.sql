-- The account and the name from which the money of a payment exception came, as the bank's statement has them: of the line that is about
-- the exception, or of the one that proved the money of its deposit. Empty where no line names an account.
CREATE OR REPLACE FUNCTION refund_sender(x payment_exceptions, OUT line_id uuid, OUT account text, OUT name text) LANGUAGE sql STABLE AS $$
    SELECT l.id, coalesce(upper(regexp_replace(l.party_account, '[^0-9A-Za-z]', '', 'g')), ''), coalesce(l.party_name, '')
    FROM (SELECT coalesce(x.line_id, (SELECT d.statement_line_id FROM otc_deposits d WHERE d.id = x.deposit_id AND x.receipt = 'otc_deposit:' || d.id)) AS id) s
        LEFT JOIN bank_lines l ON l.id = s.id
$$;
