-- Reports whether the ledger has an entry about a refund by bank, with exactly the lines that it means: its money leaves suspense (due), the
-- bank (paid), or is in suspense again (returned).
CREATE OR REPLACE FUNCTION bank_refund_entry(f refunds, what text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM ledger_entries e WHERE e.id = entry_of('refund:' || f.id || ':' || what) AND e.kind = 'bank_refund.' || what AND e.object_type = 'refund' AND e.object_id = f.id
        AND (SELECT array_agg((a.code, n.amount::numeric) ORDER BY a.code) FROM ledger_lines n JOIN ledger_accounts a ON a.id = n.account_id WHERE n.entry_id = e.id)
            = (SELECT array_agg((l.code, l.amount) ORDER BY l.code) FROM (VALUES
                ('due', 'suspense:house:KES', f.amount::numeric), ('due', 'refunds_due:house:KES', -f.amount::numeric),
                ('paid', 'refunds_due:house:KES', f.amount::numeric),
                ('paid', (SELECT a.code FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = f.bank_hold_id), -f.amount::numeric),
                ('returned', 'refunds_due:house:KES', f.amount::numeric), ('returned', 'suspense:house:KES', -f.amount::numeric)) AS l (what, code, amount)
                WHERE l.what = $2))
$$;
