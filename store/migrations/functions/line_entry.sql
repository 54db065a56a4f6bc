-- Reports whether the ledger has the entry by which the money of a line that came in goes into suspense (aside), or comes out of it
-- because the line is matched.
CREATE OR REPLACE FUNCTION line_entry(x payment_exceptions, what text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM bank_lines l JOIN ledger_entries e ON e.id = entry_of('exception:' || x.id || ':' || what) AND e.kind = 'bank_line.' || what AND e.object_id = x.id
        WHERE l.id = x.line_id AND l.side = 'credit'
            AND (SELECT array_agg((a.code, n.amount::numeric) ORDER BY a.code) FROM ledger_lines n JOIN ledger_accounts a ON a.id = n.account_id WHERE n.entry_id = e.id)
                = ARRAY[('bank:' || l.bank_account_id || ':' || l.asset, CASE what WHEN 'aside' THEN l.amount ELSE -l.amount END::numeric),
                    ('suspense:house:' || l.asset, CASE what WHEN 'aside' THEN -l.amount ELSE l.amount END::numeric)])
$$;
