-- Reports whether the ledger has an entry about a withdrawal, with exactly the lines that it means.
CREATE OR REPLACE FUNCTION withdrawal_entry(w otc_withdrawals, what text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM ledger_entries e WHERE e.id = entry_of('otc_withdrawal:' || w.id || ':' || what) AND e.kind = 'otc_withdrawal.' || what AND e.object_id = w.id
        AND (SELECT array_agg((a.code, n.amount::numeric) ORDER BY a.code) FROM ledger_lines n JOIN ledger_accounts a ON a.id = n.account_id WHERE n.entry_id = e.id)
            = (SELECT array_agg((l.code, l.amount) ORDER BY l.code) FROM withdrawal_lines(w, what) l))
$$;
