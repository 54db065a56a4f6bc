-- Checks that the lines of one statement belong to an entry and sum to zero in every asset of it, and adds them to the balances. An
-- entry gets all of its lines in one statement: so no committed entry is unbalanced, and balanced lines can't be added
-- to a booked entry later, which would move money under its old key. Only the booking of a proven payout may take the
-- payout float below what is held of it, and only entries whose sources are checked move money at a bank or earn fees in a wallet.
-- The first and the last entry name the month in which all of this lies, by which a kept plan leaves out the others; planning anew each time
-- would cost more than the work.
CREATE OR REPLACE FUNCTION apply_lines() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    off     record;
    entries bigint[] := ARRAY(SELECT DISTINCT entry_id FROM new_lines ORDER BY entry_id);
    low     bigint   := entries[1];
    high    bigint   := entries[cardinality(entries)];
BEGIN
    IF (SELECT count(*) FROM ledger_entries e WHERE e.id = ANY (entries) AND e.id BETWEEN low AND high) <> cardinality(entries) THEN
        RAISE EXCEPTION 'a line belongs to no entry' USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'ledger_lines_entry';
    END IF;
    SELECT l.entry_id, a.asset, sum(l.amount) AS sum INTO off
        FROM new_lines l JOIN ledger_accounts a ON a.id = l.account_id
        GROUP BY l.entry_id, a.asset HAVING sum(l.amount) <> 0 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'entry % is unbalanced by % %', off.entry_id, off.sum, off.asset USING ERRCODE = 'KV003';
    END IF;
    PERFORM FROM new_lines l JOIN ledger_accounts a ON a.id = l.account_id WHERE scale(trim_scale(l.amount)) > asset_scale(a.asset) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'an amount has more decimal places than its asset' USING ERRCODE = 'KV003';
    END IF;
    IF (SELECT count(*) FROM ledger_lines l WHERE l.entry_id = ANY (entries) AND l.entry_id BETWEEN low AND high) <> (SELECT count(*) FROM new_lines) THEN
        RAISE EXCEPTION 'a booked entry can''t get more lines' USING ERRCODE = 'KV002';
    END IF;
    UPDATE ledger_accounts a
        SET posted = a.posted + CASE WHEN a.debit_normal THEN d.sum ELSE -d.sum END, updated_at = now()
        FROM (SELECT account_id, sum(amount) AS sum FROM new_lines GROUP BY account_id) d
        WHERE a.id = d.account_id;
    PERFORM FROM new_lines l JOIN ledger_accounts a ON a.id = l.account_id WHERE a.kind IN ('momo_payout', 'bank', 'wallet_fees');
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT FROM new_lines l JOIN ledger_accounts a ON a.id = l.account_id JOIN ledger_entries e ON e.id = l.entry_id AND e.id BETWEEN low AND high
            WHERE a.kind = 'momo_payout' AND a.posted < a.held AND l.amount < 0 AND e.kind NOT IN
                ('order.completed', 'refund.completed', 'otc_withdrawal.paid', 'payout.paid_twice', 'payout.charged')) THEN
        RAISE EXCEPTION 'the payout float has too little' USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_accounts_available';
    END IF;
    IF EXISTS (SELECT FROM new_lines l JOIN ledger_accounts a ON a.id = l.account_id JOIN ledger_entries e ON e.id = l.entry_id AND e.id BETWEEN low AND high
            WHERE a.kind = 'bank' AND e.kind NOT LIKE 'journal.%' AND e.kind NOT LIKE 'bank\_line.%' AND e.kind NOT IN ('otc_deposit.received', 'otc_withdrawal.paid', 'bank_refund.paid')
                AND NOT (e.kind = 'order.completed' AND EXISTS (
                SELECT FROM order_payouts p JOIN holds h ON h.id = p.hold_id WHERE p.id = e.object_id AND e.key = 'order:' || p.id || ':completed'
                    AND p.rail = 'bank' AND p.status = 'completed' AND h.account_id = l.account_id
                    AND p.amount = -(SELECT sum(n.amount) FROM new_lines n WHERE (n.entry_id, n.account_id) = (l.entry_id, l.account_id))))) THEN
        RAISE EXCEPTION 'no such entry moves money at a bank' USING ERRCODE = 'KV002';
    END IF;
    IF EXISTS (SELECT FROM new_lines l JOIN ledger_accounts a ON a.id = l.account_id JOIN ledger_entries e ON e.id = l.entry_id AND e.id BETWEEN low AND high
            WHERE a.kind = 'wallet_fees' AND l.amount < 0 AND e.kind NOT IN ('transfer.fee', 'swap.fee', 'exception.accepted', 'exception.written_off')) THEN
        RAISE EXCEPTION 'no such entry earns a fee' USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
