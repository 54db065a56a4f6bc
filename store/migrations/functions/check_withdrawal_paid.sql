-- What is wrong with the proof of a withdrawal's payment; NULL for nothing.
CREATE OR REPLACE FUNCTION check_withdrawal_paid(w otc_withdrawals) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE w.method
        WHEN 'momo' THEN CASE WHEN NOT EXISTS (SELECT FROM payment_attempts a WHERE a.id = w.paid_by AND a.object_type = 'otc_withdrawal' AND a.object_id = w.id
            AND a.direction = 'payout' AND a.status = 'succeeded' AND a.moved = w.payout_amount AND a.receipt = w.receipt) THEN 'was paid by no attempt' END
        WHEN 'bank' THEN CASE
            WHEN w.statement_line_id IS NOT NULL AND NOT EXISTS (SELECT FROM bank_lines l JOIN bank_confirmations c ON c.withdrawal_id = w.id AND c.withdrawn_at IS NULL
                    JOIN intents i ON i.id = c.id AND convert_from(i.statement, 'UTF8')::jsonb -> 'terms' ->> 'line_id' = l.id::text
                WHERE l.id = w.statement_line_id AND (l.side, l.asset, l.amount) = ('debit', 'KES', w.payout_amount) AND w.receipt IN (l.bank_reference, l.reference_code))
                THEN 'names a line that does not show it'
            WHEN EXISTS (SELECT FROM bank_confirmations c WHERE c.withdrawal_id = w.id AND c.withdrawn_at IS NULL AND c.reference <> w.receipt) THEN 'has another reference'
            WHEN NOT withdrawal_confirmed(w) THEN 'lacks a second officer, or a line of a statement' END
        ELSE CASE WHEN NOT EXISTS (SELECT FROM transfers f WHERE f.id = w.transfer_id AND f.status = 'completed') THEN 'has crypto that did not arrive' END
    END;
END $$;
