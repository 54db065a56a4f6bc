-- +goose Up
-- The escrow pool: addresses that are lent to one order each, and what came to them. An address is lent again
-- only when its last order is over, the money has left it, and it has rested, so that late money is recognised.

-- How many addresses a network has, and for how long one rests.
CREATE TABLE escrow_policy (
    network      network     PRIMARY KEY,
    keep_free    int         NOT NULL CHECK (keep_free BETWEEN 0 AND 1000),
    most         int         NOT NULL CHECK (most BETWEEN 1 AND 10000),
    rest_seconds int         NOT NULL CHECK (rest_seconds BETWEEN 600 AND 7776000),
    updated_by   uuid        REFERENCES users (id),
    updated_at   timestamptz NOT NULL,
    version      bigint      NOT NULL DEFAULT 1,
    CONSTRAINT escrow_policy_order CHECK (keep_free <= most)
);
INSERT INTO escrow_policy (network, keep_free, most, rest_seconds, updated_at)
    SELECT n, 20, 500, 604800, now() FROM unnest(ARRAY['ethereum', 'tron', 'solana']) AS n;
CREATE TRIGGER escrow_policy_kept BEFORE DELETE ON escrow_policy FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The pool. A row is of the wallet with its id, and comes and goes with it.
CREATE TABLE escrow_addresses (
    id           uuid        PRIMARY KEY REFERENCES wallets (id),
    network      network     NOT NULL,
    status       text        NOT NULL,
    rest_until   timestamptz,
    last_used_at timestamptz,
    label        text        NOT NULL DEFAULT '' CHECK (char_length(label) <= 200),
    reason       text        NOT NULL DEFAULT '' CHECK (char_length(reason) <= 200),
    updated_by   uuid        REFERENCES users (id),
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    version      bigint      NOT NULL DEFAULT 1,
    CONSTRAINT escrow_addresses_reason CHECK ((status = 'disabled') = (reason <> ''))
);
CREATE INDEX escrow_addresses_free_idx ON escrow_addresses (network, last_used_at NULLS FIRST, id) WHERE status = 'free';
CREATE INDEX escrow_addresses_rest_idx ON escrow_addresses (network, rest_until) WHERE status = 'resting';
CREATE INDEX escrow_addresses_list_idx ON escrow_addresses (created_at DESC, id DESC);

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('escrow_address', '', 'free'),
    ('escrow_address', 'free', 'leased'),
    ('escrow_address', 'leased', 'resting'),
    ('escrow_address', 'resting', 'free'),
    ('escrow_address', 'free', 'disabled'),
    ('escrow_address', 'resting', 'disabled'),
    ('escrow_address', 'disabled', 'free');

-- An address is lent to one order at a time, and an order borrows one address, once.
CREATE TABLE escrow_leases (
    id         uuid        PRIMARY KEY,
    wallet_id  uuid        NOT NULL REFERENCES escrow_addresses (id),
    order_id   uuid        NOT NULL REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED,
    leased_at  timestamptz NOT NULL,
    ended_at   timestamptz,
    rest_until timestamptz,
    CONSTRAINT escrow_leases_order_key UNIQUE (order_id),
    CONSTRAINT escrow_leases_ended CHECK ((ended_at IS NULL) = (rest_until IS NULL)),
    CONSTRAINT escrow_leases_times CHECK (ended_at >= leased_at AND rest_until > ended_at)
);
CREATE UNIQUE INDEX escrow_leases_open_key ON escrow_leases (wallet_id) WHERE ended_at IS NULL;
CREATE INDEX escrow_leases_wallet_idx ON escrow_leases (wallet_id, leased_at DESC);
CREATE INDEX escrow_leases_open_idx ON escrow_leases (leased_at) WHERE ended_at IS NULL;

-- What came to an address while an order borrowed it, and what it was to the order. Final movements are never
-- changed any more, so this is where it stands what became of them. A claim with a hold is in the order's price,
-- or what goes back instead of it; of the others, the exception tells.
CREATE TABLE escrow_claims (
    id           uuid            PRIMARY KEY,
    deposit_id   uuid            REFERENCES chain_deposits (id),
    payment_id   uuid            REFERENCES chain_payments (id),
    order_id     uuid            NOT NULL REFERENCES orders (id),
    wallet_id    uuid            NOT NULL REFERENCES escrow_addresses (id),
    kind         text            NOT NULL CHECK (kind IN ('exact', 'repriced', 'under', 'over', 'wrong_asset', 'duplicate', 'late')),
    asset        asset           NOT NULL,
    amount       positive_amount NOT NULL,
    hold_id      uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    exception_id uuid            REFERENCES payment_exceptions (id),
    taken        zero_or_more    NOT NULL DEFAULT 0, -- by the vendor
    refunded     zero_or_more    NOT NULL DEFAULT 0,
    kept         zero_or_more    NOT NULL DEFAULT 0, -- by the house
    created_at   timestamptz     NOT NULL,
    CONSTRAINT escrow_claims_deposit_key UNIQUE (deposit_id),
    CONSTRAINT escrow_claims_payment_key UNIQUE (payment_id),
    CONSTRAINT escrow_claims_hold_key UNIQUE (hold_id),
    CONSTRAINT escrow_claims_exception_key UNIQUE (exception_id),
    CONSTRAINT escrow_claims_source CHECK (num_nonnulls(deposit_id, payment_id) = 1),
    CONSTRAINT escrow_claims_hold CHECK ((hold_id IS NOT NULL) = (kind IN ('exact', 'repriced', 'under', 'over'))),
    CONSTRAINT escrow_claims_exception CHECK ((exception_id IS NULL) = (kind IN ('exact', 'repriced'))),
    CONSTRAINT escrow_claims_spent CHECK (taken + refunded + kept <= amount)
);
-- One arrival decides over an order: it pays for it, or it ends it.
CREATE UNIQUE INDEX escrow_claims_order_key ON escrow_claims (order_id) WHERE hold_id IS NOT NULL;
CREATE INDEX escrow_claims_order_idx ON escrow_claims (order_id);
CREATE INDEX escrow_claims_wallet_idx ON escrow_claims (wallet_id);

-- Wallets that are to be made. The id is the wallet's, so that however often it is made, there is one.
CREATE TABLE escrow_growth (
    id         uuid        PRIMARY KEY,
    network    network     NOT NULL,
    order_id   uuid, -- that found none; it is not opened yet
    asked_by   uuid        REFERENCES users (id),
    created_at timestamptz NOT NULL,
    made_at    timestamptz
);
CREATE INDEX escrow_growth_due_idx ON escrow_growth (network, created_at) WHERE made_at IS NULL;

CREATE INDEX chain_deposits_unsettled_idx ON chain_deposits (wallet_id) WHERE status = 'seen' AND kind <> 'empty';
CREATE INDEX chain_deposits_awaited_idx ON chain_deposits (wallet_id) WHERE kind = 'awaited';
CREATE INDEX chain_deposits_exceptions_idx ON chain_deposits (wallet_id) WHERE exception_id IS NOT NULL;
CREATE INDEX deposit_waits_open_idx ON deposit_waits (wallet_id) WHERE ended_at IS NULL;

-- escrow_trouble says in a word why an address can't be lent, whatever its status; NULL when nothing is in the way.
-- An address with somebody's money on it would mix it with that of its next order.
-- +goose StatementBegin
CREATE FUNCTION escrow_trouble(wallet uuid) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM FROM ledger_accounts WHERE owner_id = wallet AND kind = 'custody' AND asset IN ('USDT', 'USDC') AND posted <> 0;
    IF FOUND THEN
        RETURN 'money';
    END IF;
    PERFORM FROM chain_deposits WHERE wallet_id = wallet AND status = 'seen' AND kind <> 'empty';
    IF FOUND THEN
        RETURN 'seen';
    END IF;
    -- From the wallet's rows to their exceptions, so that it costs the same with many exceptions.
    PERFORM FROM chain_deposits d JOIN payment_exceptions x ON x.id = d.exception_id
        WHERE d.wallet_id = wallet AND d.exception_id IS NOT NULL AND x.status IN ('open', 'refunding');
    IF FOUND THEN
        RETURN 'exception';
    END IF;
    PERFORM FROM escrow_claims c JOIN payment_exceptions x ON x.id = c.exception_id WHERE c.wallet_id = wallet AND x.status IN ('open', 'refunding');
    IF FOUND THEN
        RETURN 'exception';
    END IF;
    PERFORM FROM deposit_quarantine q JOIN wallets w ON w.id = wallet AND w.network = q.network
        WHERE q.settled_at IS NULL AND (q.wallet_id = w.id OR w.address IN (q.payload ->> 'from', q.payload ->> 'to'));
    IF FOUND THEN
        RETURN 'quarantine';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- add_escrow_address puts a new wallet of the pool into it. Its key has to sign, so it is hot.
-- +goose StatementBegin
CREATE FUNCTION add_escrow_address() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.type <> 'hot' OR NEW.custody <> 'custodial' THEN
        RAISE EXCEPTION 'wallet % of the escrow pool has to sign by itself', NEW.id USING ERRCODE = 'KV002';
    END IF;
    INSERT INTO escrow_addresses (id, network, status, label, created_at, updated_at)
        VALUES (NEW.id, NEW.network, 'free', NEW.label, NEW.created_at, NEW.created_at);
    UPDATE escrow_growth SET made_at = NEW.created_at WHERE id = NEW.id AND made_at IS NULL;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER wallets_join_escrow AFTER INSERT ON wallets FOR EACH ROW WHEN (NEW.purpose = 'escrow') EXECUTE FUNCTION add_escrow_address();
CREATE TRIGGER wallets_escrow_hot BEFORE UPDATE ON wallets FOR EACH ROW WHEN (NEW.purpose = 'escrow' AND NEW.type <> 'hot') EXECUTE FUNCTION refuse_change();
INSERT INTO escrow_addresses (id, network, status, label, created_at, updated_at)
    SELECT id, network, 'free', label, created_at, created_at FROM wallets WHERE purpose = 'escrow' AND type = 'hot' AND custody = 'custodial';

-- check_escrow_address holds the status to the leases, and lets nothing come back into use with money on it or
-- before it has rested.
-- +goose StatementBegin
CREATE FUNCTION check_escrow_address() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    why text;
BEGIN
    IF (NEW.status = 'leased') <> EXISTS (SELECT FROM escrow_leases WHERE wallet_id = NEW.id AND ended_at IS NULL) THEN
        RAISE EXCEPTION 'escrow address % is % against its leases', NEW.id, NEW.status USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status = 'free' AND OLD.status <> 'free' THEN
        IF NEW.rest_until > NEW.updated_at THEN
            RAISE EXCEPTION 'escrow address % rests until %', NEW.id, NEW.rest_until USING ERRCODE = 'KV001';
        END IF;
        why := escrow_trouble(NEW.id);
        IF why IS NOT NULL THEN
            RAISE EXCEPTION 'escrow address % is not free: %', NEW.id, why USING ERRCODE = 'KV001';
        END IF;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER escrow_addresses_born BEFORE INSERT ON escrow_addresses FOR EACH ROW EXECUTE FUNCTION check_transition('escrow_address');
CREATE TRIGGER escrow_addresses_moves BEFORE UPDATE ON escrow_addresses FOR EACH ROW WHEN (OLD.status <> NEW.status)
    EXECUTE FUNCTION check_transition('escrow_address');
CREATE TRIGGER escrow_addresses_true BEFORE UPDATE ON escrow_addresses FOR EACH ROW EXECUTE FUNCTION check_escrow_address();
CREATE TRIGGER escrow_addresses_same BEFORE UPDATE ON escrow_addresses FOR EACH ROW
    WHEN ((OLD.id, OLD.network, OLD.created_at) IS DISTINCT FROM (NEW.id, NEW.network, NEW.created_at)) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER escrow_addresses_kept BEFORE DELETE ON escrow_addresses FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- check_lease lends an address that is free, rested and empty.
-- +goose StatementBegin
CREATE FUNCTION check_lease() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    a   escrow_addresses;
    why text;
BEGIN
    SELECT * INTO a FROM escrow_addresses WHERE id = NEW.wallet_id FOR NO KEY UPDATE;
    IF a.status IS DISTINCT FROM 'free' THEN
        RAISE EXCEPTION 'escrow address % is %', NEW.wallet_id, a.status USING ERRCODE = 'KV001';
    END IF;
    IF NEW.ended_at IS NOT NULL THEN
        RAISE EXCEPTION 'a lease begins open' USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM escrow_leases WHERE wallet_id = NEW.wallet_id AND rest_until > NEW.leased_at;
    IF FOUND OR a.rest_until > NEW.leased_at THEN
        RAISE EXCEPTION 'escrow address % rests', NEW.wallet_id USING ERRCODE = 'KV001';
    END IF;
    why := escrow_trouble(NEW.wallet_id);
    IF why IS NOT NULL THEN
        RAISE EXCEPTION 'escrow address % can''t be lent: %', NEW.wallet_id, why USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- check_lease_end takes an address back when its order is over, nobody waits for its money any more, all that came
-- is accounted for, and what the order held there has left. It decides for how long the address rests.
-- +goose StatementBegin
CREATE FUNCTION check_lease_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM orders WHERE id = NEW.order_id AND status IN ('completed', 'cancelled', 'failed');
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % is not over', NEW.order_id USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM deposit_waits WHERE wallet_id = NEW.wallet_id AND ended_at IS NULL;
    IF FOUND THEN
        RAISE EXCEPTION 'somebody waits for money at escrow address %', NEW.wallet_id USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM chain_deposits d WHERE d.wallet_id = NEW.wallet_id AND d.kind = 'awaited' AND d.status = 'final'
        AND NOT EXISTS (SELECT FROM escrow_claims c WHERE c.deposit_id = d.id);
    IF FOUND THEN
        RAISE EXCEPTION 'money at escrow address % is not accounted for', NEW.wallet_id USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM ledger_accounts a WHERE a.owner_id = NEW.wallet_id AND a.kind = 'wallet_balance' AND a.asset IN ('USDT', 'USDC') AND (a.posted <> a.held
        OR EXISTS (SELECT FROM holds h WHERE h.account_id = a.id AND h.status = 'held' AND h.object_type = 'order' AND h.object_id = NEW.order_id));
    IF FOUND THEN
        RAISE EXCEPTION 'the money of order % has not left escrow address %', NEW.order_id, NEW.wallet_id USING ERRCODE = 'KV001';
    END IF;
    SELECT NEW.ended_at + make_interval(secs => p.rest_seconds) INTO NEW.rest_until
        FROM escrow_addresses a JOIN escrow_policy p ON p.network = a.network WHERE a.id = NEW.wallet_id;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- follow_lease keeps the address as its lease is.
-- +goose StatementBegin
CREATE FUNCTION follow_lease() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.ended_at IS NULL THEN
        UPDATE escrow_addresses SET status = 'leased', last_used_at = NEW.leased_at, rest_until = NULL, updated_at = NEW.leased_at, version = version + 1
            WHERE id = NEW.wallet_id;
    ELSE
        UPDATE escrow_addresses SET status = 'resting', rest_until = NEW.rest_until, updated_at = NEW.ended_at, version = version + 1
            WHERE id = NEW.wallet_id;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- A lease is of a sale that was just opened.
-- +goose StatementBegin
CREATE FUNCTION check_lease_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM orders WHERE id = NEW.order_id AND order_type LIKE 'OFF\_RAMP%' AND status = 'pending';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % borrows no escrow address', NEW.order_id USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM deposit_waits WHERE wallet_id = NEW.wallet_id AND ended_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nobody waits for money at escrow address %', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER escrow_leases_lent BEFORE INSERT ON escrow_leases FOR EACH ROW EXECUTE FUNCTION check_lease();
CREATE CONSTRAINT TRIGGER escrow_leases_sale AFTER INSERT ON escrow_leases DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_lease_order();
CREATE TRIGGER escrow_leases_same BEFORE UPDATE ON escrow_leases FOR EACH ROW
    WHEN (OLD.ended_at IS NOT NULL OR NEW.ended_at IS NULL
        OR (OLD.id, OLD.wallet_id, OLD.order_id, OLD.leased_at) IS DISTINCT FROM (NEW.id, NEW.wallet_id, NEW.order_id, NEW.leased_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER escrow_leases_taken_back BEFORE UPDATE ON escrow_leases FOR EACH ROW EXECUTE FUNCTION check_lease_end();
CREATE TRIGGER escrow_leases_followed AFTER INSERT OR UPDATE ON escrow_leases FOR EACH ROW EXECUTE FUNCTION follow_lease();
CREATE TRIGGER escrow_leases_kept BEFORE DELETE ON escrow_leases FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER escrow_leases_kept_all BEFORE TRUNCATE ON escrow_leases FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A sale shows the address that it borrowed and no other: whoever pays there pays into our custody.
-- +goose StatementBegin
CREATE FUNCTION check_order_escrow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM escrow_leases l JOIN wallets w ON w.id = l.wallet_id WHERE l.order_id = NEW.id AND l.ended_at IS NULL
        AND w.network = NEW.network AND NEW.escrow_network = w.network AND NEW.escrow_address = w.address AND NEW.wallet_address = w.address;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % does not show the escrow address that it borrowed', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER orders_escrow AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_type LIKE 'OFF\_RAMP%') EXECUTE FUNCTION check_order_escrow();

-- A sale is paid out only for final crypto of exactly the amount that it is priced by.
-- +goose StatementBegin
CREATE FUNCTION check_order_claim() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM escrow_claims WHERE order_id = NEW.id AND kind IN ('exact', 'repriced') AND asset = NEW.asset AND amount = NEW.crypto_amount;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nothing was taken for order %', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER orders_claimed AFTER UPDATE ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_type LIKE 'OFF\_RAMP%' AND OLD.status <> NEW.status AND NEW.status IN ('processing', 'completed')) EXECUTE FUNCTION check_order_claim();

-- check_claim holds a claim to what came: a final movement to the address that the order borrows, or a payment of
-- ours that funded it, in full.
-- +goose StatementBegin
CREATE FUNCTION check_claim() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    l escrow_leases;
    o orders;
BEGIN
    SELECT * INTO l FROM escrow_leases WHERE order_id = NEW.order_id AND wallet_id = NEW.wallet_id AND ended_at IS NULL FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % does not borrow escrow address %', NEW.order_id, NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    SELECT * INTO o FROM orders WHERE id = NEW.order_id;
    IF NEW.deposit_id IS NOT NULL THEN
        PERFORM FROM chain_deposits d WHERE d.id = NEW.deposit_id AND d.status = 'final' AND d.kind = 'awaited' AND d.wallet_id = NEW.wallet_id
            AND d.asset = NEW.asset AND d.amount = NEW.amount AND d.final_at >= l.leased_at;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'movement % did not bring this to order %', NEW.deposit_id, NEW.order_id USING ERRCODE = 'KV002';
        END IF;
    ELSE
        PERFORM FROM chain_payments p JOIN wallets w ON w.id = NEW.wallet_id WHERE p.id = NEW.payment_id AND p.purpose = 'funding' AND p.object_id = NEW.order_id
            AND p.status = 'completed' AND p.network = w.network AND p.to_address = w.address AND p.asset = NEW.asset AND p.amount = NEW.amount;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'payment % did not fund order %', NEW.payment_id, NEW.order_id USING ERRCODE = 'KV002';
        END IF;
    END IF;
    IF (NEW.kind = 'wrong_asset') <> (NEW.asset <> o.asset) THEN
        RAISE EXCEPTION 'order % asks for %', NEW.order_id, o.asset USING ERRCODE = 'KV002';
    END IF;
    IF NEW.hold_id IS NOT NULL AND o.status NOT IN ('pending', 'confirming', 'processing', 'failed') THEN
        RAISE EXCEPTION 'order % is % and takes nothing', NEW.order_id, o.status USING ERRCODE = 'KV001';
    END IF;
    IF (NEW.taken, NEW.refunded, NEW.kept) <> (0, 0, 0) THEN
        RAISE EXCEPTION 'a claim begins unspent' USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- check_claim_hold sees at the end of the transaction that what was taken is held, all of it, on the address's own
-- account: only so it leaves the address once.
-- +goose StatementBegin
CREATE FUNCTION check_claim_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = NEW.hold_id AND h.object_type = 'order' AND h.object_id = NEW.order_id
        AND h.placed = NEW.amount AND a.kind = 'wallet_balance' AND a.owner_id = NEW.wallet_id AND a.asset = NEW.asset;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'what order % took is not held', NEW.order_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER escrow_claims_true BEFORE INSERT ON escrow_claims FOR EACH ROW EXECUTE FUNCTION check_claim();
CREATE CONSTRAINT TRIGGER escrow_claims_held AFTER INSERT ON escrow_claims DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.hold_id IS NOT NULL) EXECUTE FUNCTION check_claim_hold();
CREATE TRIGGER escrow_claims_same BEFORE UPDATE ON escrow_claims FOR EACH ROW
    WHEN ((OLD.id, OLD.deposit_id, OLD.payment_id, OLD.order_id, OLD.wallet_id, OLD.kind, OLD.asset, OLD.amount, OLD.hold_id, OLD.exception_id, OLD.created_at)
          IS DISTINCT FROM
          (NEW.id, NEW.deposit_id, NEW.payment_id, NEW.order_id, NEW.wallet_id, NEW.kind, NEW.asset, NEW.amount, NEW.hold_id, NEW.exception_id, NEW.created_at)
          OR NEW.taken < OLD.taken OR NEW.refunded < OLD.refunded OR NEW.kept < OLD.kept)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER escrow_claims_kept BEFORE DELETE ON escrow_claims FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER escrow_claims_kept_all BEFORE TRUNCATE ON escrow_claims FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Nobody stops waiting at a borrowed address before all that came there is accounted for.
-- +goose StatementBegin
CREATE FUNCTION check_wait_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM escrow_leases l JOIN chain_deposits d ON d.wallet_id = l.wallet_id WHERE l.wallet_id = NEW.wallet_id AND l.ended_at IS NULL
        AND d.kind = 'awaited' AND d.status = 'final' AND NOT EXISTS (SELECT FROM escrow_claims c WHERE c.deposit_id = d.id);
    IF FOUND THEN
        RAISE EXCEPTION 'money at escrow address % is not accounted for', NEW.wallet_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER deposit_waits_accounted BEFORE UPDATE ON deposit_waits FOR EACH ROW WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL)
    EXECUTE FUNCTION check_wait_end();

-- A transfer of a customer of ours to an address of the pool would be seen as ours, be owed to nobody and pay for
-- no order.
-- +goose StatementBegin
CREATE FUNCTION refuse_escrow_transfer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM wallets WHERE network = NEW.network AND address = NEW.to_address AND purpose = 'escrow';
    IF FOUND THEN
        RAISE EXCEPTION 'transfer % goes to an address of the escrow pool', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER transfers_not_to_escrow BEFORE INSERT ON transfers FOR EACH ROW EXECUTE FUNCTION refuse_escrow_transfer();

-- The pool grows up to its limit. The policy is locked, so that two can't both make the last one.
-- +goose StatementBegin
CREATE FUNCTION check_escrow_growth() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    most int;
BEGIN
    SELECT p.most INTO most FROM escrow_policy p WHERE p.network = NEW.network FOR NO KEY UPDATE;
    IF most IS NULL OR most <= (SELECT count(*) FROM escrow_addresses WHERE network = NEW.network AND status <> 'disabled')
            + (SELECT count(*) FROM escrow_growth WHERE network = NEW.network AND made_at IS NULL) THEN
        RAISE EXCEPTION 'the escrow pool of % is as large as it may be', NEW.network USING ERRCODE = 'KV002';
    END IF;
    NEW.made_at := NULL;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER escrow_growth_limited BEFORE INSERT ON escrow_growth FOR EACH ROW EXECUTE FUNCTION check_escrow_growth();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, UPDATE (keep_free, most, rest_seconds, updated_by, updated_at, version) ON escrow_policy TO kivuko_app;
        GRANT SELECT, UPDATE (status, label, reason, updated_by, updated_at, version) ON escrow_addresses TO kivuko_app;
        GRANT SELECT, INSERT, UPDATE (ended_at) ON escrow_leases TO kivuko_app;
        GRANT SELECT, INSERT, UPDATE (taken, refunded, kept) ON escrow_claims TO kivuko_app;
        GRANT SELECT, INSERT ON escrow_growth TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
