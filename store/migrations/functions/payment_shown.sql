-- The bank's reference of a line that shows a payment by bank of an object: of its amount, to its account, from the bank at which its money is
-- reserved, not before there was something to pay, and explained by nothing else. NULL when no statement shows one.
CREATE OR REPLACE FUNCTION payment_shown(hold uuid, amount numeric, account text, type text, object uuid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT l.bank_reference FROM bank_lines l JOIN holds h ON h.id = $1 JOIN ledger_accounts a ON a.id = h.account_id
    WHERE l.bank_account_id = a.owner_id AND (l.side, l.asset, l.amount) = ('debit', 'KES', $2) AND l.status <> 'matched' AND line_in_time(l, type, object)
        AND upper(regexp_replace(l.party_account, '[^0-9A-Za-z]', '', 'g')) = upper(regexp_replace(account, '[^0-9A-Za-z]', '', 'g'))
    ORDER BY l.id LIMIT 1
$$;
