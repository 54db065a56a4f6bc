-- +goose Up
-- Fees are the house's to pay. A wallet may hold native coins of its owner beside what the house brought it: no
-- transaction may be signed whose fee could reach into them.

CREATE INDEX chain_payments_alive_idx ON chain_payments (coalesce(fee_wallet_id, wallet_id)) WHERE status IN ('signed', 'broadcast', 'included');

-- What the house has in a wallet for the fee of one more transaction, of the given payment: custody without what
-- is owed to the owner and without the most that the other payments on their way may still cost. It is below
-- zero when the house owes the wallet coins. NULL where nothing is to be kept apart: in the house's own wallets,
-- and in cold ones, whose transactions are signed elsewhere.
CREATE FUNCTION house_gas(wallet uuid, payment uuid) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT posted FROM ledger_accounts WHERE code = 'custody:' || w.id || ':' || c.coin), 0)
        - coalesce((SELECT posted FROM ledger_accounts WHERE code = 'wallet_balance:' || w.id || ':' || c.coin), 0)
        - coalesce((SELECT sum((SELECT max(t.fee_limit) FROM chain_attempts t
                WHERE t.payment_id = p.id AND t.status IN ('signed', 'broadcast', 'included', 'replaced')))
            FROM chain_payments p
            WHERE coalesce(p.fee_wallet_id, p.wallet_id) = w.id AND p.status IN ('signed', 'broadcast', 'included') AND p.id <> payment), 0)
    FROM wallets w, (VALUES ('ethereum', 'ETH'), ('tron', 'TRX'), ('solana', 'SOL')) AS c (network, coin)
    WHERE w.id = wallet AND c.network = w.network AND w.owner_id IS NOT NULL AND w.type = 'hot'
$$;

-- Of two transactions that are stored at once the second one counts the first: it waits for its lock, which is
-- also that of the fees and native deposits that are booked.
-- +goose StatementBegin
CREATE FUNCTION fee_is_the_houses() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    payer uuid := (SELECT coalesce(fee_wallet_id, wallet_id) FROM chain_payments WHERE id = NEW.payment_id);
    share numeric;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko gas ' || payer, 0));
    share := house_gas(payer, NEW.payment_id);
    IF NEW.fee_limit > share THEN
        RAISE EXCEPTION 'the fee of up to % of payment % is above the % that the house has in wallet %', NEW.fee_limit, NEW.payment_id, share, payer
            USING ERRCODE = 'KV004';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_attempts_fee BEFORE INSERT ON chain_attempts FOR EACH ROW WHEN (NEW.fee_limit > 0) EXECUTE FUNCTION fee_is_the_houses();
