-- What the house earned in a wallet is the fee of a completed transfer from there, of a swap that was paid from there, or what came there under an exception and officers
-- kept: exactly that, and once, because a key of the ledger is used once. An entry without lines would get them later, unchecked.
CREATE OR REPLACE FUNCTION check_earned_fee() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT bool_and(a.kind <> 'wallet_fees') FROM ledger_lines l JOIN ledger_accounts a ON a.id = l.account_id WHERE l.entry_id = NEW.id) AND NEW.kind NOT IN ('transfer.fee', 'swap.fee') THEN
        RETURN NULL; -- what was kept lies in no wallet of somebody
    END IF;
    IF NOT EXISTS (SELECT FROM (
            SELECT 'wallet_balance:' || f.wallet_id || ':' || f.asset AS source, f.wallet_id, f.asset, f.fee AS amount FROM transfers f
                WHERE NEW.kind = 'transfer.fee' AND f.id = NEW.object_id AND NEW.key = 'transfer:' || f.id || ':fee' AND f.status = 'completed'
            UNION ALL SELECT 'wallet_balance:' || s.house_wallet_id || ':' || s.to_asset, s.house_wallet_id, s.to_asset, s.fee FROM swaps s
                WHERE NEW.kind = 'swap.fee' AND s.id = NEW.object_id AND NEW.key = 'swap:' || s.id || ':fee' AND swap_paid(s.id, 'swap_payout')
            UNION ALL SELECT 'suspense:house:' || x.asset, d.wallet_id, x.asset, x.amount FROM payment_exceptions x JOIN chain_deposits d ON d.id = deposit_of(x.receipt)
                WHERE x.id = NEW.object_id AND NEW.kind = 'exception.' || x.status AND NEW.key = 'exception:' || x.id || ':' || x.status
                    AND x.status IN ('accepted', 'written_off') AND d.status = 'final' AND (d.asset, d.amount) = (x.asset, x.amount)) s
            WHERE (SELECT array_agg((a.code, l.amount::numeric) ORDER BY a.code) FROM ledger_lines l JOIN ledger_accounts a ON a.id = l.account_id WHERE l.entry_id = NEW.id)
                = ARRAY[(s.source, s.amount::numeric), ('wallet_fees:' || s.wallet_id || ':' || s.asset, -s.amount::numeric)]) THEN
        RAISE EXCEPTION 'entry % earns no fee', NEW.key USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
