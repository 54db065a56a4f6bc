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
            USING ERRCODE = 'KV005';
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

-- What networks take for the payments of people, so that nobody can have the house pay fees without end. expected
-- is what a payment without a transaction is assumed to cost: as much as the one before it on the network. amount
-- is what its transactions took and the one on its way may take.
CREATE TABLE network_fees (
    payment_id uuid         PRIMARY KEY REFERENCES chain_payments (id),
    network    network      NOT NULL,
    user_id    uuid         REFERENCES users (id), -- who bought or asked for it; none for what the house does for itself
    vendor_id  uuid         REFERENCES users (id), -- the merchant on whose account it was
    expected   zero_or_more NOT NULL,
    amount     zero_or_more NOT NULL DEFAULT 0,
    at         timestamptz  NOT NULL -- of the payment, or of its last transaction
);
CREATE INDEX network_fees_user_idx ON network_fees (user_id, network, at) INCLUDE (expected, amount) WHERE user_id IS NOT NULL;
CREATE INDEX network_fees_vendor_idx ON network_fees (vendor_id, network, at) INCLUDE (expected, amount) WHERE vendor_id IS NOT NULL;
CREATE INDEX network_fees_network_idx ON network_fees (network, at) INCLUDE (expected, amount);
CREATE TRIGGER network_fees_kept BEFORE DELETE ON network_fees FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER network_fees_kept_all BEFORE TRUNCATE ON network_fees FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER network_fees_derived BEFORE UPDATE ON network_fees FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE FUNCTION fee_causer(purpose text, object_id uuid) RETURNS TABLE (user_id uuid, vendor_id uuid) LANGUAGE sql STABLE AS $$
    SELECT o.customer_id, o.vendor_id FROM orders o WHERE $1 = 'order' AND o.id = $2
    UNION ALL SELECT t.requested_by, t.vendor_id FROM transfers t WHERE $1 = 'transfer' AND t.id = $2
    UNION ALL SELECT f.user_id, f.vendor_id FROM network_fees f WHERE $1 = 'gas' AND f.payment_id = $2
$$;

-- +goose StatementBegin
CREATE FUNCTION expect_fee() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO network_fees (payment_id, network, user_id, vendor_id, expected, at)
    SELECT NEW.id, NEW.network, c.user_id, c.vendor_id,
        coalesce((SELECT f.amount FROM network_fees f WHERE f.network = NEW.network AND f.amount > 0 ORDER BY f.at DESC LIMIT 1), 0), NEW.created_at
    FROM (SELECT 1) one LEFT JOIN fee_causer(NEW.purpose, NEW.object_id) c ON true LIMIT 1;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_payments_fee AFTER INSERT ON chain_payments FOR EACH ROW EXECUTE FUNCTION expect_fee();

-- +goose StatementBegin
CREATE FUNCTION count_fee() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    payment uuid;
BEGIN
    IF TG_TABLE_NAME = 'chain_payments' THEN
        payment := NEW.id;
    ELSE
        payment := NEW.payment_id;
    END IF;
    UPDATE network_fees SET expected = 0, amount = (SELECT coalesce(sum(a.fee) FILTER (WHERE a.status IN ('succeeded', 'failed')), 0)
            + coalesce(max(a.fee_limit) FILTER (WHERE a.status IN ('signed', 'broadcast', 'included', 'replaced')), 0)
        FROM chain_attempts a WHERE a.payment_id = payment), at = greatest(at, NEW.created_at)
    WHERE payment_id = payment;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_attempts_count AFTER INSERT OR UPDATE OF status, fee ON chain_attempts FOR EACH ROW EXECUTE FUNCTION count_fee();
CREATE TRIGGER chain_payments_count AFTER UPDATE OF status ON chain_payments FOR EACH ROW
    WHEN (NEW.status = 'cancelled' AND OLD.status <> 'cancelled') EXECUTE FUNCTION count_fee();

INSERT INTO network_fees (payment_id, network, user_id, vendor_id, expected, amount, at)
SELECT p.id, p.network, c.user_id, c.vendor_id, 0, p.fee, p.created_at
FROM chain_payments p LEFT JOIN LATERAL fee_causer(p.purpose, p.object_id) c ON true WHERE p.purpose <> 'gas';
INSERT INTO network_fees (payment_id, network, user_id, vendor_id, expected, amount, at)
SELECT p.id, p.network, c.user_id, c.vendor_id, 0, p.fee, p.created_at
FROM chain_payments p LEFT JOIN LATERAL fee_causer(p.purpose, p.object_id) c ON true WHERE p.purpose = 'gas';

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT ON network_fees TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
