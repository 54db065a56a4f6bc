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

-- A lane that somebody else's transaction closed may be opened again by a person who says why, and goes on from
-- what the final chain counts. Nothing of ours may be on its way then: its number could be given out twice.
CREATE TABLE lane_reopenings (
    id            uuid        PRIMARY KEY,
    wallet_id     uuid        NOT NULL REFERENCES nonce_lanes (wallet_id),
    foreign_nonce bigint,     -- that had closed it; none where the chain was only found to be ahead
    next_before   bigint      NOT NULL,
    next_after    bigint      NOT NULL, -- what the chain counts by block
    block         bigint      NOT NULL CHECK (block >= 0),
    block_id      text        NOT NULL CHECK (char_length(block_id) BETWEEN 1 AND 128),
    reason        text        NOT NULL CHECK (char_length(reason) BETWEEN 1 AND 500),
    reopened_by   uuid        NOT NULL REFERENCES users (id),
    reopened_at   timestamptz NOT NULL,
    CONSTRAINT lane_reopenings_forward CHECK (next_after >= next_before AND (foreign_nonce IS NOT NULL OR next_after > next_before)),
    CONSTRAINT lane_reopenings_foreign CHECK (foreign_nonce < next_after)
);
CREATE INDEX lane_reopenings_wallet_idx ON lane_reopenings (wallet_id, reopened_at DESC);
CREATE TRIGGER lane_reopenings_same BEFORE UPDATE OR DELETE ON lane_reopenings FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER lane_reopenings_kept BEFORE TRUNCATE ON lane_reopenings FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

DROP TRIGGER nonce_lanes_same ON nonce_lanes;
CREATE TRIGGER nonce_lanes_same BEFORE UPDATE ON nonce_lanes FOR EACH ROW
    WHEN ((OLD.wallet_id, OLD.first, OLD.opened_at) IS DISTINCT FROM (NEW.wallet_id, NEW.first, NEW.opened_at) OR NEW.next < OLD.next
          OR (pg_trigger_depth() = 0 AND (NEW.next <> OLD.next
              OR (OLD.foreign_nonce IS NOT NULL AND NEW.foreign_nonce IS DISTINCT FROM OLD.foreign_nonce))))
    EXECUTE FUNCTION refuse_change();

-- +goose StatementBegin
CREATE FUNCTION reopen_lane() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM nonce_lanes WHERE wallet_id = NEW.wallet_id AND next = NEW.next_before AND foreign_nonce IS NOT DISTINCT FROM NEW.foreign_nonce
        FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the lane of wallet % is not as the reopening says', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM chain_attempts WHERE lane = NEW.wallet_id AND status IN ('signed', 'broadcast', 'included', 'replaced');
    IF FOUND THEN
        RAISE EXCEPTION 'a transaction of wallet % is undecided', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM cold_drafts WHERE lane = NEW.wallet_id AND status = 'open';
    IF FOUND THEN
        RAISE EXCEPTION 'a transaction of wallet % is being signed', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    UPDATE nonce_lanes SET next = NEW.next_after, foreign_nonce = NULL WHERE wallet_id = NEW.wallet_id;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER lane_reopenings_applied BEFORE INSERT ON lane_reopenings FOR EACH ROW EXECUTE FUNCTION reopen_lane();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT ON lane_reopenings TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
