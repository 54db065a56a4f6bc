-- The lines of the ledger entry of a journal entry: by the code of the account, a debit above zero. A correction undoes all
-- of the entry that it names.
CREATE OR REPLACE FUNCTION journal_lines(e journal_entries) RETURNS TABLE (code text, amount numeric) LANGUAGE sql STABLE AS $$
    WITH source AS (
        SELECT (o).kind, (o).bank_account_id, CASE (o).float_account WHEN 'utility' THEN 'momo_payout' ELSE 'momo_collection' END || ':house:' || (o).asset AS float,
            'bank:' || (o).bank_account_id || ':' || (o).asset AS bank, ':house:' || (o).asset AS house, CASE e.kind WHEN 'correction' THEN -(o).amount ELSE (o).amount END AS amount
        FROM (SELECT CASE e.kind WHEN 'correction' THEN (SELECT j FROM journal_entries j WHERE j.id = e.corrects) ELSE e END AS o) x)
    SELECT CASE s.kind WHEN 'capital_in' THEN s.bank WHEN 'capital_out' THEN 'capital' || s.house WHEN 'bank_charge' THEN 'bank_fees' || s.house
            WHEN 'float_top_up' THEN s.float WHEN 'float_withdrawal' THEN s.bank WHEN 'operator_charge' THEN 'momo_fees' || s.house END, s.amount
        FROM source s
    UNION ALL
    SELECT CASE s.kind WHEN 'capital_in' THEN 'capital' || s.house WHEN 'float_withdrawal' THEN s.float WHEN 'operator_charge' THEN s.float ELSE s.bank END, -s.amount
        FROM source s
$$;
