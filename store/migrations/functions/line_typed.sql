-- Reports whether officers typed a line's reference as that of the money of a deposit which has no line yet, other than one. Such a line is
-- that deposit's.
CREATE OR REPLACE FUNCTION line_typed(l bank_lines, other uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT l.side = 'credit' AND (
        EXISTS (SELECT FROM otc_confirmations c JOIN otc_deposits d ON d.id = c.deposit_id
            WHERE c.reference = l.bank_reference AND c.bank_account_id = l.bank_account_id AND c.withdrawn_at IS NULL AND c.line_id IS NULL AND c.first
                AND c.amount = l.amount AND d.statement_line_id IS NULL AND d.id IS DISTINCT FROM other)
        OR EXISTS (SELECT FROM otc_deposits d WHERE d.bank_account_id = l.bank_account_id AND d.bank_reference = l.bank_reference AND d.method = 'bank'
                AND d.received_at IS NOT NULL AND d.statement_line_id IS NULL AND d.received_amount = l.amount AND d.id IS DISTINCT FROM other))
$$;
