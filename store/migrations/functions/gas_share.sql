-- The house's coins in a wallet, whoever owns it, for the fee of one more transaction of the given payment: custody without the owner's
-- coins, with the gas that arrived and is not booked yet, and without the most that the other pending payments may still cost.
CREATE OR REPLACE FUNCTION gas_share(wallet uuid, payment uuid) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT coalesce((SELECT posted FROM ledger_accounts WHERE code = 'custody:' || w.id || ':' || c.coin), 0)
        - coalesce((SELECT posted FROM ledger_accounts WHERE code = 'wallet_balance:' || w.id || ':' || c.coin), 0)
        + arrived_gas(w.id)
        - coalesce((SELECT sum((SELECT max(t.fee_limit) FROM chain_attempts t
                WHERE t.payment_id = p.id AND t.status IN ('signed', 'broadcast', 'included', 'replaced')))
            FROM chain_payments p
            WHERE coalesce(p.fee_wallet_id, p.wallet_id) = w.id AND p.status IN ('signed', 'broadcast', 'included') AND p.id IS DISTINCT FROM payment), 0)
    FROM wallets w, (VALUES ('ethereum', 'ETH'), ('tron', 'TRX'), ('solana', 'SOL')) AS c (network, coin)
    WHERE w.id = wallet AND c.network = w.network);
END $$;
