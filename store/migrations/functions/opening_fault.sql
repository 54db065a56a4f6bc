-- Why the balance of an account of several owners at a block can't be its opening balance; NULL when it can. The deposit watch has noted what moved
-- since the account's address is known. Where it is behind the block, it reads the blocks up to there without the wallet.
CREATE OR REPLACE FUNCTION opening_fault(account uuid, block bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN c.network IS NULL THEN 'has no deposit watch'
        WHEN opening_fault.block < coalesce(a.watched_from, c.started) THEN 'was read at a block before it was watched'
        WHEN EXISTS (SELECT FROM multisig_moves m WHERE m.account_id = a.id AND m.block > opening_fault.block)
            OR EXISTS (SELECT FROM chain_attempts t JOIN chain_payments p ON p.id = t.payment_id
                WHERE t.network = a.network AND t.status = 'succeeded' AND t.block > opening_fault.block AND p.to_address = a.address) THEN 'has moved something since it was read'
        END
    FROM multisig_accounts a LEFT JOIN deposit_cursors c ON c.network = a.network WHERE a.id = account
$$;
