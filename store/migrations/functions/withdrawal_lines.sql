-- The lines of an entry of the ledger about a withdrawal: by the code of the account, a debit above zero. Crypto that the house bought from the
-- merchant, shillings that left, or crypto that the merchant bought.
CREATE OR REPLACE FUNCTION withdrawal_lines(w otc_withdrawals, what text) RETURNS TABLE (code text, amount numeric) LANGUAGE sql STABLE AS $$
    SELECT l.code, l.amount FROM (VALUES
        ('sold', 'fiat_balance:00000000-0000-7000-8000-6b6976756b6f:KES', w.payout_amount + w.fee_amount),
        ('sold', 'fiat_balance:' || w.merchant_id || ':KES', -w.payout_amount),
        ('sold', 'fees:house:KES', -w.fee_amount),
        ('paid', 'fiat_balance:' || w.merchant_id || ':KES', CASE w.source_asset WHEN 'KES' THEN w.source_amount ELSE w.payout_amount END),
        ('paid', CASE w.method WHEN 'momo' THEN 'momo_payout:house:KES' ELSE (SELECT a.code FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = w.bank_hold_id) END,
            -w.payout_amount),
        ('paid', 'fees:house:KES', CASE w.source_asset WHEN 'KES' THEN -w.fee_amount ELSE 0 END),
        ('bought', 'fiat_balance:' || w.merchant_id || ':KES', w.source_amount),
        ('bought', 'fiat_balance:00000000-0000-7000-8000-6b6976756b6f:KES', w.fee_amount - w.source_amount),
        ('bought', 'fees:house:KES', -w.fee_amount)) AS l (what, code, amount)
    WHERE l.what = $2 AND l.amount <> 0
$$;
