-- The bank's reference of a line that shows the payment of a refund by bank: to its account, of its amount, not before it was begun, and
-- explained by nothing else. NULL when no statement shows one.
CREATE OR REPLACE FUNCTION refund_shown(f refunds) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT l.bank_reference FROM bank_lines l JOIN holds h ON h.id = f.bank_hold_id JOIN ledger_accounts a ON a.id = h.account_id
    WHERE l.bank_account_id = a.owner_id AND (l.side, l.asset, l.amount) = ('debit', 'KES', f.amount) AND l.status <> 'matched' AND line_in_time(l, 'bank_refund', f.id)
        AND upper(regexp_replace(l.party_account, '[^0-9A-Za-z]', '', 'g')) = upper(regexp_replace(f.account_number, '[^0-9A-Za-z]', '', 'g'))
    ORDER BY l.id LIMIT 1
$$;
