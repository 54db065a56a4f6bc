-- Whether enough officers, who still may, confirmed that a refund was paid by bank: as for a withdrawal, see withdrawal_confirmed.
CREATE OR REPLACE FUNCTION refund_confirmed(f refunds) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT count(*) FROM bank_confirmations c JOIN users u ON u.id = c.officer_id AND u.is_active AND u.role IN ('admin', 'treasury')
            WHERE c.refund_id = f.id AND c.withdrawn_at IS NULL
                AND NOT EXISTS (SELECT FROM bank_lines l JOIN bank_statements b ON b.id = l.statement_id JOIN files o ON o.id = b.file_id
                    WHERE l.id = f.statement_line_id AND u.id IN (b.imported_by, o.uploaded_by)))
        >= CASE WHEN f.statement_line_id IS NOT NULL OR f.amount <= (SELECT r.one_above FROM approval_rules r WHERE r.object_type = 'bank_payout') THEN 1 ELSE 2 END;
END $$;
