-- Whether enough officers, who still may, confirmed that a withdrawal was paid by bank: one beside a line of the bank's statement or up to the
-- value of bank payouts, two otherwise. Who brought that line's statement in is no witness beside it.
CREATE OR REPLACE FUNCTION withdrawal_confirmed(w otc_withdrawals) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT (SELECT count(*) FROM bank_confirmations c JOIN users u ON u.id = c.officer_id AND u.is_active AND u.role IN ('admin', 'treasury')
            WHERE c.withdrawal_id = w.id AND c.withdrawn_at IS NULL
                AND NOT EXISTS (SELECT FROM bank_lines l JOIN bank_statements b ON b.id = l.statement_id JOIN files f ON f.id = b.file_id
                    WHERE l.id = w.statement_line_id AND u.id IN (b.imported_by, f.uploaded_by)))
        >= CASE WHEN w.statement_line_id IS NOT NULL OR w.payout_amount <= (SELECT r.one_above FROM approval_rules r WHERE r.object_type = 'bank_payout') THEN 1 ELSE 2 END
$$;
