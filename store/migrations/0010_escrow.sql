-- +goose Up
-- The escrow pool: addresses that are lent to one order each, and their deposits. An address is lent again only when
-- its last order has ended, the money has left it, and it has rested, so that late money is recognised.

-- How many addresses a network may have, and how long they rest.
CREATE TABLE escrow_policy (
    network      network     PRIMARY KEY,
    keep_free    int         NOT NULL CHECK (keep_free BETWEEN 0 AND 1000),
    most         int         NOT NULL CHECK (most BETWEEN 1 AND 10000),
    rest_seconds int         NOT NULL CHECK (rest_seconds BETWEEN 600 AND 7776000),
    idle_rest_seconds int    NOT NULL CHECK (idle_rest_seconds BETWEEN 600 AND 7776000), -- of an address that saw no money, if it is less
    user_percent int         NOT NULL CHECK (user_percent BETWEEN 1 AND 100), -- how much of the pool sales of unverified users may use
    updated_by   uuid        REFERENCES users (id),
    updated_at   timestamptz NOT NULL,
    version      bigint      NOT NULL DEFAULT 1,
    CONSTRAINT escrow_policy_order CHECK (keep_free <= most)
);
INSERT INTO escrow_policy (network, keep_free, most, rest_seconds, idle_rest_seconds, user_percent, updated_at)
    SELECT n, 20, 500, 604800, 21600, 25, now() FROM unnest(ARRAY['ethereum', 'tron', 'solana']) AS n;
CALL never_removed('escrow_policy');
CALL same_columns('escrow_policy', 'network');
CREATE TRIGGER escrow_policy_guarded BEFORE UPDATE ON escrow_policy FOR EACH ROW
    WHEN (NEW.rest_seconds < OLD.rest_seconds OR NEW.idle_rest_seconds < OLD.idle_rest_seconds OR NEW.user_percent > OLD.user_percent)
    EXECUTE FUNCTION guard_escrow_policy();

-- The pool. A row has the id of its wallet, and is created and deleted with it.
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
CALL moves_by('escrow_addresses', 'escrow_address');
CALL never_removed('escrow_addresses');
CALL same_columns('escrow_addresses', 'id, network, created_at');
CREATE TRIGGER escrow_addresses_true BEFORE UPDATE ON escrow_addresses FOR EACH ROW EXECUTE FUNCTION check_escrow_address();

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
CALL never_removed('escrow_leases');
CALL same_columns('escrow_leases', 'id, wallet_id, order_id, leased_at');
CREATE TRIGGER escrow_leases_closed BEFORE UPDATE ON escrow_leases FOR EACH ROW
    WHEN (OLD.ended_at IS NOT NULL OR NEW.ended_at IS NULL)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER escrow_leases_lent BEFORE INSERT ON escrow_leases FOR EACH ROW EXECUTE FUNCTION check_lease();
CREATE CONSTRAINT TRIGGER escrow_leases_sale AFTER INSERT ON escrow_leases DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_lease_order();
CREATE TRIGGER escrow_leases_taken_back BEFORE UPDATE ON escrow_leases FOR EACH ROW EXECUTE FUNCTION check_lease_end();
CREATE TRIGGER escrow_leases_followed AFTER INSERT OR UPDATE ON escrow_leases FOR EACH ROW EXECUTE FUNCTION follow_lease();

-- Deposits to an address while an order borrowed it, and their meaning for the order. Final movements are immutable,
-- so their outcome is stored here. A claim with a hold pays the order, or its refund replaces that; the others have an
-- exception.
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
    taken        zero_or_more    NOT NULL DEFAULT 0, -- taken by the vendor
    refunded     zero_or_more    NOT NULL DEFAULT 0,
    kept         zero_or_more    NOT NULL DEFAULT 0, -- kept by the house
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
-- One deposit decides an order: it pays or ends it.
CREATE UNIQUE INDEX escrow_claims_order_key ON escrow_claims (order_id) WHERE hold_id IS NOT NULL;
CREATE INDEX escrow_claims_order_idx ON escrow_claims (order_id);
CREATE INDEX escrow_claims_wallet_idx ON escrow_claims (wallet_id);
CALL never_removed('escrow_claims');
CALL same_columns('escrow_claims',
    'id, deposit_id, payment_id, order_id, wallet_id, kind, asset, amount, hold_id, exception_id, created_at');
CALL only_grow('escrow_claims', 'taken, refunded, kept');
CREATE TRIGGER escrow_claims_true BEFORE INSERT ON escrow_claims FOR EACH ROW EXECUTE FUNCTION check_claim();
CREATE CONSTRAINT TRIGGER escrow_claims_held AFTER INSERT ON escrow_claims DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.hold_id IS NOT NULL) EXECUTE FUNCTION check_claim_hold();

ALTER TABLE orders ADD CONSTRAINT orders_other_deposit_fkey FOREIGN KEY (other_deposit_id) REFERENCES chain_deposits (id);

-- Requested wallets. The id is the wallet's, so that repeated creation makes only one.
CREATE TABLE escrow_requests (
    id         uuid        PRIMARY KEY,
    network    network     NOT NULL,
    order_id   uuid, -- the order that found no free address; it is not opened yet
    asked_by   uuid        REFERENCES users (id),
    created_at timestamptz NOT NULL,
    made_at    timestamptz
);
CREATE INDEX escrow_requests_due_idx ON escrow_requests (network, created_at) WHERE made_at IS NULL;
CREATE TRIGGER escrow_requests_limited BEFORE INSERT ON escrow_requests FOR EACH ROW EXECUTE FUNCTION check_escrow_request();
