-- By how much the lines of a bank account that nothing explains, and that are not booked, change its balance: money that went out.
CREATE OR REPLACE FUNCTION bank_unbooked(account uuid) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT coalesce(-sum(l.amount), 0) FROM bank_lines l WHERE l.bank_account_id = account AND l.status = 'aside' AND l.side = 'debit'
$$;
