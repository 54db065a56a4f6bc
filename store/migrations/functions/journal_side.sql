-- The side of the bank account on which a journal entry is; NULL when it does not touch the bank, and when it was a mistake or
-- corrects one: then the bank moved nothing.
CREATE OR REPLACE FUNCTION journal_side(e journal_entries) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN e.bank_account_id IS NULL OR EXISTS (SELECT FROM journal_entries c WHERE c.corrects = e.id AND c.line_id IS NULL) THEN NULL
        WHEN e.kind IN ('capital_in', 'float_withdrawal') THEN 'credit'
        WHEN e.kind <> 'correction' THEN 'debit'
        WHEN e.line_id IS NULL THEN NULL
        ELSE (SELECT CASE WHEN o.kind IN ('capital_in', 'float_withdrawal') THEN 'debit' ELSE 'credit' END FROM journal_entries o WHERE o.id = e.corrects)
    END
$$;
