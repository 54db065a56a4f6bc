-- The lines of an entry of the ledger about a deposit: by the code of the account, a debit above zero. What is received at a bank, settled
-- in shillings, sold for crypto, or returned.
CREATE OR REPLACE FUNCTION deposit_lines(d otc_deposits, what text) RETURNS TABLE (code text, amount numeric) LANGUAGE sql STABLE AS $$
    SELECT l.code, l.amount FROM (VALUES
        ('received', 'bank:' || d.bank_account_id || ':KES', d.received_amount::numeric),
        ('received', 'orders_in_flight:house:KES', -d.received_amount),
        ('settled', 'orders_in_flight:house:KES', d.received_amount),
        ('settled', 'fiat_balance:' || d.merchant_id || ':KES', d.fee_amount - d.received_amount),
        ('settled', 'fees:house:KES', -d.fee_amount),
        ('sold', 'orders_in_flight:house:KES', d.received_amount),
        ('sold', 'fiat_balance:00000000-0000-7000-8000-6b6976756b6f:KES', d.fee_amount - d.received_amount),
        ('sold', 'fees:house:KES', -d.fee_amount),
        ('returned', 'orders_in_flight:house:KES', d.received_amount),
        ('returned', 'suspense:house:KES', -d.received_amount)) AS l (what, code, amount)
    WHERE l.what = $2 AND l.amount <> 0
$$;
