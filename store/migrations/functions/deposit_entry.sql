-- Reports whether the ledger has an entry about a deposit, with exactly the lines that it means.
CREATE OR REPLACE FUNCTION deposit_entry(d otc_deposits, what text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM ledger_entries e WHERE e.id = entry_of('otc_deposit:' || d.id || ':' || what) AND e.kind = 'otc_deposit.' || what AND e.object_id = d.id
        AND (SELECT array_agg((a.code, n.amount::numeric) ORDER BY a.code) FROM ledger_lines n JOIN ledger_accounts a ON a.id = n.account_id WHERE n.entry_id = e.id)
            = (SELECT array_agg((l.code, l.amount) ORDER BY l.code) FROM deposit_lines(d, what) l))
$$;
