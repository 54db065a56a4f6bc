-- +goose Up
-- Wallets, offers and orders. A row and its hold are written in one transaction, the hold last; so the references to
-- holds are checked at its end.

-- Money on the wrong network. An Ethereum and a TRON address are two forms of the same 20 bytes of one key, so that
-- money sent on one network to the other network's form of our address is controlled by our key. Every wallet stores
-- its counterpart's address (counterpart), and money received there gets a wallet of its own.

-- tron_address encodes an account, 20 bytes, as a TRON address: base58 of a prefix, the account and a four-byte
-- checksum.
-- +goose StatementBegin
CREATE FUNCTION tron_address(account bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    digits CONSTANT text := '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
    raw    bytea := '\x41'::bytea || account;
    number numeric := 0;
    spelt  text := '';
BEGIN
    IF length(account) <> 20 THEN
        RETURN NULL;
    END IF;
    raw := raw || substr(sha256(sha256(raw)), 1, 4);
    FOR i IN 0 .. 24 LOOP
        number := number * 256 + get_byte(raw, i);
    END LOOP;
    WHILE number > 0 LOOP
        spelt := substr(digits, mod(number, 58)::int + 1, 1) || spelt;
        number := div(number, 58);
    END LOOP;
    RETURN spelt;
END $$;
-- +goose StatementEnd

-- tron_account is the account of a TRON address; NULL for an invalid one. This function and counterpart_address set
-- the schema of their helpers, because a backup is restored without a search path.
-- +goose StatementBegin
CREATE FUNCTION tron_account(address text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    digits  CONSTANT text := '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
    raw     bytea := decode(repeat('00', 25), 'hex');
    number  numeric := 0;
    account bytea;
BEGIN
    IF address COLLATE "C" !~ '^T[1-9A-HJ-NP-Za-km-z]{33}$' THEN
        RETURN NULL;
    END IF;
    FOR i IN 1 .. 34 LOOP
        number := number * 58 + strpos(digits, substr(address, i, 1)) - 1;
    END LOOP;
    FOR i IN REVERSE 24 .. 0 LOOP
        raw := set_byte(raw, i, mod(number, 256)::int);
        number := div(number, 256);
    END LOOP;
    account := substr(raw, 2, 20);
    IF number <> 0 OR tron_address(account) COLLATE "C" <> address THEN
        RETURN NULL; -- invalid character
    END IF;
    RETURN account;
END $$;
-- +goose StatementEnd

-- hex_address is an Ethereum address in its form for comparison: the case of its letters is only a checksum.
CREATE FUNCTION hex_address(address text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT lower(address COLLATE "C") $$;

-- counterpart_address is the other network's form of an address, in lower case for Ethereum. NULL where a network's
-- keys are of another kind, like Solana's.
CREATE FUNCTION counterpart_address(network text, address text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
    SELECT CASE
        WHEN network = 'tron' THEN '0x' || encode(tron_account(address), 'hex')
        WHEN network = 'ethereum' AND hex_address(address) ~ '^0x[0-9a-f]{40}$' THEN tron_address(decode(substr(hex_address(address), 3), 'hex'))
    END
$$;

CREATE TABLE wallets (
    id         uuid        PRIMARY KEY,
    owner_type text        NOT NULL CHECK (owner_type IN ('customer', 'treasury', 'merchant', 'sub_merchant')),
    owner_id   uuid        REFERENCES users (id),
    vendor_id  uuid        REFERENCES users (id),
    purpose    text        NOT NULL DEFAULT '' CHECK (purpose IN ('', 'treasury', 'gas', 'escrow', 'counterpart')),
    network    network     NOT NULL,
    address    text        NOT NULL CHECK (char_length(address) BETWEEN 20 AND 128),
    asset      asset       NOT NULL,
    type       text        NOT NULL CHECK (type IN ('hot', 'cold')),
    custody    text        NOT NULL CHECK (custody IN ('custodial', 'multisig')),
    label      text        NOT NULL CHECK (char_length(label) <= 200),
    is_default boolean     NOT NULL,
    created_by uuid,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    counterpart       text        GENERATED ALWAYS AS (counterpart_address(network, address)) STORED,
    counterpart_of    uuid        REFERENCES wallets (id),
    CONSTRAINT wallets_address_key UNIQUE (network, address),
    CONSTRAINT wallets_owner CHECK ((owner_id IS NULL) = (purpose <> '')),
    CONSTRAINT wallets_vendor CHECK ((vendor_id IS NOT NULL) = (owner_type IN ('merchant', 'sub_merchant'))),
    CONSTRAINT wallets_counterpart CHECK ((counterpart_of IS NOT NULL) = (purpose = 'counterpart')),
    CONSTRAINT wallets_counterpart_of_key UNIQUE (counterpart_of)
);
-- One default wallet of an owner on a network.
CREATE UNIQUE INDEX wallets_default_key ON wallets (owner_id, network) WHERE is_default AND owner_id IS NOT NULL;
CREATE INDEX wallets_owner_idx ON wallets (owner_id, created_at);
CREATE INDEX wallets_vendor_idx ON wallets (vendor_id, created_at) WHERE vendor_id IS NOT NULL;
CREATE INDEX wallets_house_idx ON wallets (network, purpose) WHERE owner_id IS NULL;
-- For reconciliation, which reads the wallets of a network in order.
CREATE INDEX wallets_network_idx ON wallets (network, id) WHERE custody = 'custodial';
-- One key is one wallet: with a wallet on each network, money meant for one would be the other's.
CREATE UNIQUE INDEX wallets_account_key ON wallets ((CASE WHEN network = 'ethereum' THEN hex_address(address) ELSE counterpart END)) WHERE purpose <> 'counterpart';
CREATE UNIQUE INDEX wallets_counterpart_key ON wallets (counterpart) WHERE purpose <> 'counterpart';
CALL same_columns('wallets', 'owner_type, owner_id, vendor_id, purpose, network, address, custody, counterpart_of');
-- A hot wallet may be made cold. The reverse would let a key sign online that was promised never to.
CREATE TRIGGER wallets_stay_cold BEFORE UPDATE ON wallets FOR EACH ROW
    WHEN (OLD.type = 'cold' AND NEW.type <> 'cold')
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER wallets_escrow_hot BEFORE UPDATE ON wallets FOR EACH ROW
    WHEN (NEW.purpose = 'escrow' AND NEW.type <> 'hot')
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER wallets_join_escrow AFTER INSERT ON wallets FOR EACH ROW WHEN (NEW.purpose = 'escrow') EXECUTE FUNCTION add_escrow_address();
CREATE TRIGGER wallets_counterpart_true BEFORE INSERT ON wallets FOR EACH ROW WHEN (NEW.counterpart_of IS NOT NULL) EXECUTE FUNCTION check_counterpart();

-- A rotation of the master key adds a seal of the same key. The earlier ones stay: a seal that can't be opened loses nothing.
CREATE TABLE wallet_keys (
    wallet_id  uuid    NOT NULL REFERENCES wallets (id),
    seal       integer NOT NULL DEFAULT 1 CHECK (seal >= 1), -- the highest one of a wallet counts
    ciphertext bytea NOT NULL CHECK (octet_length(ciphertext) BETWEEN 1 AND 4096),
    master_key text  NOT NULL,
    public_key bytea NOT NULL,
    algorithm  text  NOT NULL CHECK (algorithm IN ('secp256k1', 'ed25519')),
    PRIMARY KEY (wallet_id, seal)
);
CALL append_only('wallet_keys');
CREATE TRIGGER wallet_keys_same BEFORE INSERT ON wallet_keys FOR EACH ROW WHEN (NEW.seal > 1) EXECUTE FUNCTION check_new_seal();
CREATE TRIGGER wallet_keys_no_counterpart BEFORE INSERT ON wallet_keys FOR EACH ROW EXECUTE FUNCTION refuse_counterpart_key();

CREATE TABLE offers (
    id          uuid            PRIMARY KEY,
    vendor_id   uuid            NOT NULL REFERENCES users (id),
    created_by  uuid            NOT NULL REFERENCES users (id),
    offer_type  text            NOT NULL CHECK (offer_type IN ('SELL', 'BUY')),
    network     network         NOT NULL,
    asset       asset           NOT NULL CHECK (asset IN ('USDT', 'USDC')),
    wallet_id   uuid            NOT NULL REFERENCES wallets (id),
    total       positive_amount NOT NULL,
    rate        numeric         NOT NULL CHECK (rate > 0 AND rate < 1e15 AND scale(rate) <= 6),
    min_order   positive_amount NOT NULL,
    max_order   positive_amount NOT NULL,
    status      text            NOT NULL,
    description text            NOT NULL CHECK (char_length(description) <= 500),
    -- The remainder of an offer is the amount of this hold and stored nowhere else.
    hold_id     uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    created_at  timestamptz     NOT NULL,
    updated_at  timestamptz     NOT NULL,
    deleted_at  timestamptz,
    version     bigint          NOT NULL DEFAULT 1,
    CONSTRAINT offers_hold_key UNIQUE (hold_id),
    CONSTRAINT offers_bounds CHECK (min_order <= max_order AND min_order <= total),
    CONSTRAINT offers_funded CHECK (status IN ('draft', 'closed') OR hold_id IS NOT NULL),
    CONSTRAINT offers_deleted CHECK (deleted_at IS NULL OR status IN ('draft', 'closed'))
);
CREATE INDEX offers_list_idx ON offers (status, created_at DESC, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX offers_vendor_idx ON offers (vendor_id, created_at DESC, id DESC) WHERE deleted_at IS NULL;
CALL moves_by('offers', 'offer');
-- An offer keeps its hold.
CALL same_columns('offers', 'vendor_id, offer_type, network, asset, wallet_id');
CALL set_once('offers', 'hold_id');
CREATE TRIGGER offers_sell_hot BEFORE UPDATE ON offers FOR EACH ROW
    WHEN (NEW.offer_type = 'SELL' AND NEW.status = 'active' AND OLD.status IN ('draft', 'paused')) EXECUTE FUNCTION check_selling_wallet();

-- The kinds of orders, as in the code. A kind without an offer has the price of a quote.
CREATE TABLE order_kinds (
    order_type    text    NOT NULL,
    order_subtype text    NOT NULL,
    offer         text    NOT NULL CHECK (offer IN ('', 'SELL', 'BUY')),
    quoted        boolean NOT NULL,
    vendor_opens  boolean NOT NULL,
    custodial     boolean NOT NULL,
    parties       boolean NOT NULL,
    bank          boolean NOT NULL,
    PRIMARY KEY (order_type, order_subtype),
    CHECK ((offer = '') = quoted)
);
INSERT INTO order_kinds (order_type, order_subtype, offer, quoted, vendor_opens, custodial, parties, bank) VALUES
    ('ON_RAMP_BUY', 'standard_onramp', 'SELL', false, false, false, false, false),
    ('ON_RAMP_SELL', 'standard_onramp', 'SELL', false, true, false, false, false),
    ('OFF_RAMP_SELL', 'standard_offramp', 'BUY', false, false, false, false, false),
    ('OFF_RAMP_SELL', 'remittance_offramp', 'BUY', false, false, false, true, true),
    ('OFF_RAMP_SELL', 'custodial_remittance_offramp', '', true, false, true, true, true),
    ('OFF_RAMP_SELL', 'treasury_offramp', '', true, false, false, false, true),
    ('OFF_RAMP_BUY', 'standard_offramp', 'BUY', false, true, false, false, false);
CREATE TRIGGER order_kinds_same BEFORE INSERT OR UPDATE OR DELETE ON order_kinds FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE orders (
    id               uuid            PRIMARY KEY,
    customer_id      uuid            NOT NULL REFERENCES users (id),
    vendor_id        uuid            NOT NULL REFERENCES users (id),
    offer_id         uuid            REFERENCES offers (id),
    order_type       text            NOT NULL CHECK (order_type IN ('ON_RAMP_BUY', 'ON_RAMP_SELL', 'OFF_RAMP_BUY', 'OFF_RAMP_SELL')),
    order_subtype    text            NOT NULL CHECK (order_subtype IN ('standard_onramp', 'standard_offramp', 'remittance_offramp',
                                                      'custodial_remittance_offramp', 'treasury_offramp')),
    network          network         NOT NULL,
    asset            asset           NOT NULL,
    rate             numeric         NOT NULL CHECK (rate > 0 AND rate < 1e15 AND scale(rate) <= 6),
    asked_amount     positive_amount NOT NULL,
    crypto_amount    positive_amount NOT NULL,
    fiat_amount      positive_amount NOT NULL,
    vendor_amount    positive_amount NOT NULL,
    rounding_amount  amount          NOT NULL,
    wallet_id        uuid            NOT NULL REFERENCES wallets (id),
    wallet_address   text            NOT NULL CHECK (char_length(wallet_address) <= 128),
    refund_address   text            NOT NULL DEFAULT '',
    status           text            NOT NULL,
    status_detail    text            NOT NULL CHECK (char_length(status_detail) <= 200),
    payment_method   text            NOT NULL,
    payment_phone    text            NOT NULL CHECK (payment_phone ~ '^254[17][0-9]{8}$'),
    hold_id          uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    payment_txn_id   text            NOT NULL DEFAULT '',
    tx_hash          text            NOT NULL DEFAULT '',
    merchant_request text            NOT NULL DEFAULT '',
    checkout_request text            NOT NULL DEFAULT '',
    momo_receipt     text            NOT NULL DEFAULT '',
    sender_name      text            NOT NULL DEFAULT '',
    sender_country   text            NOT NULL DEFAULT '',
    sender_phone     text            NOT NULL DEFAULT '',
    beneficiary      jsonb           NOT NULL DEFAULT '{}',
    escrow_address   text            NOT NULL DEFAULT '',
    escrow_network   text            NOT NULL DEFAULT '',
    escrow_reference text            NOT NULL DEFAULT '',
    deposit_tx_hash  text            NOT NULL DEFAULT '',
    deposit_confirms int             NOT NULL DEFAULT 0,
    deposit_at       timestamptz,
    expires_at       timestamptz     NOT NULL,
    completed_at     timestamptz,
    created_at       timestamptz     NOT NULL,
    updated_at       timestamptz     NOT NULL,
    deleted_at       timestamptz,
    version          bigint          NOT NULL DEFAULT 1,
    opened_by        uuid            REFERENCES users (id), -- NULL: the customer itself
    quote_id         uuid            REFERENCES fx_quotes (id) DEFERRABLE INITIALLY DEFERRED,
    fund_wallet_id   uuid            REFERENCES wallets (id),
    other_deposit_id uuid, -- crypto of another amount, about which the seller may decide
    waits_until      timestamptz, -- of a sale whose deposit a reorganisation removed: it waits at least so long again; set by the trigger
    payment_reference text           NOT NULL CHECK (payment_reference ~ '^KVK[0-9A-F]{9}$'),
    CONSTRAINT orders_hold_key UNIQUE (hold_id),
    CONSTRAINT orders_price CHECK (fiat_amount = vendor_amount + rounding_amount AND fiat_amount = trunc(fiat_amount)),
    CONSTRAINT orders_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT orders_quote_key UNIQUE (quote_id),
    -- Also of orders that have ended: money that comes late names theirs.
    CONSTRAINT orders_payment_reference_key UNIQUE (payment_reference)
);
CREATE INDEX orders_created_idx ON orders (created_at DESC, id DESC);
CREATE INDEX orders_offer_idx ON orders (offer_id, created_at DESC) WHERE offer_id IS NOT NULL;
CREATE INDEX orders_open_idx ON orders (status, created_at DESC, id DESC) WHERE status NOT IN ('completed', 'cancelled', 'failed');
CREATE INDEX orders_tx_hash_idx ON orders (lower(tx_hash) text_pattern_ops) WHERE tx_hash <> '';
CREATE INDEX orders_deposit_tx_idx ON orders (lower(deposit_tx_hash) text_pattern_ops) WHERE deposit_tx_hash <> '';
CREATE INDEX orders_address_idx ON orders (wallet_address);
CREATE INDEX orders_pending_idx ON orders (customer_id) WHERE status = 'pending';
CREATE INDEX orders_receipt_idx ON orders (momo_receipt text_pattern_ops) INCLUDE (id, customer_id, vendor_id) WHERE momo_receipt <> '' AND deleted_at IS NULL;
CREATE INDEX orders_phone_idx ON orders (payment_phone text_pattern_ops) INCLUDE (id, customer_id, vendor_id) WHERE deleted_at IS NULL;
CREATE INDEX orders_phone_end_idx ON orders (reverse(payment_phone) text_pattern_ops) INCLUDE (id, customer_id, vendor_id) WHERE deleted_at IS NULL;
CREATE INDEX orders_customer_idx ON orders (customer_id, created_at DESC, id DESC) INCLUDE (vendor_id) WHERE deleted_at IS NULL;
CREATE INDEX orders_vendor_idx ON orders (vendor_id, created_at DESC, id DESC) INCLUDE (customer_id) WHERE deleted_at IS NULL;
-- One order opened by a vendor waits for a customer at a time, so that no one is flooded with prompts and addresses. A
-- seen deposit may be undone, and the order waits again.
CREATE UNIQUE INDEX orders_vendor_opened_key ON orders (vendor_id, customer_id)
    WHERE order_type = 'ON_RAMP_SELL' AND status = 'pending' OR order_type = 'OFF_RAMP_BUY' AND status IN ('pending', 'confirming');
CREATE INDEX orders_payee_idx ON orders (payment_phone, created_at) WHERE payment_method = 'momo' AND order_type LIKE 'OFF\_RAMP%';
-- Each sale borrows an escrow address, which then rests for days even if the sale is unpaid. Opening a sale counts the
-- unpaid ones.
CREATE INDEX orders_unpaid_idx ON orders (customer_id, created_at) WHERE order_type = 'OFF_RAMP_SELL'
    AND (status IN ('pending', 'cancelled') OR status = 'failed' AND status_detail = 'deposit_mismatch');
CREATE INDEX orders_unpaid_vendor_idx ON orders (vendor_id, created_at) WHERE order_type = 'OFF_RAMP_BUY'
    AND (status IN ('pending', 'cancelled') OR status = 'failed' AND status_detail = 'deposit_mismatch');
CALL moves_by('orders', 'order');
CALL never_removed('orders');
CREATE TRIGGER orders_sell_hot BEFORE INSERT ON orders FOR EACH ROW WHEN (NEW.order_type IN ('ON_RAMP_BUY', 'ON_RAMP_SELL'))
    EXECUTE FUNCTION check_selling_wallet();
CREATE TRIGGER orders_asked BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION fill_asked_amount();
CREATE TRIGGER orders_kind_fits BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION check_order_kind();
CREATE CONSTRAINT TRIGGER orders_quote_used AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.quote_id IS NOT NULL)
    EXECUTE FUNCTION check_order_quote();
CREATE CONSTRAINT TRIGGER orders_sale_held AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_type IN ('OFF_RAMP_BUY', 'OFF_RAMP_SELL')) EXECUTE FUNCTION check_sale_hold();
CREATE CONSTRAINT TRIGGER orders_sale_held_anew AFTER UPDATE OF hold_id, vendor_amount ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_type IN ('OFF_RAMP_BUY', 'OFF_RAMP_SELL') AND (OLD.hold_id, OLD.vendor_amount) IS DISTINCT FROM (NEW.hold_id, NEW.vendor_amount))
    EXECUTE FUNCTION check_sale_hold();
CREATE CONSTRAINT TRIGGER orders_sale_funded AFTER INSERT OR UPDATE OF status ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.fund_wallet_id IS NOT NULL AND NEW.status IN ('pending', 'cancelled')) EXECUTE FUNCTION check_sale_funding();
CREATE CONSTRAINT TRIGGER orders_sale_paid AFTER UPDATE OF status ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_type IN ('OFF_RAMP_BUY', 'OFF_RAMP_SELL') AND NEW.status = 'completed' AND OLD.status <> 'completed') EXECUTE FUNCTION check_sale_paid();
CREATE CONSTRAINT TRIGGER orders_purchase_paid AFTER UPDATE OF status ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_type IN ('ON_RAMP_BUY', 'ON_RAMP_SELL') AND NEW.status = 'processing' AND OLD.status = 'pending') EXECUTE FUNCTION check_purchase_paid();
-- The agreed terms are immutable.
CALL same_columns('orders',
    'id, customer_id, vendor_id, offer_id, order_type, order_subtype, network, asset, rate, asked_amount, wallet_id,
     payment_method, payment_phone, payment_reference, opened_by, quote_id, fund_wallet_id, sender_name, sender_country, sender_phone, beneficiary,
     escrow_address, escrow_network, escrow_reference, created_at, expires_at');
CREATE TRIGGER orders_price_same BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION check_order_change();
CREATE CONSTRAINT TRIGGER orders_escrow AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_type LIKE 'OFF\_RAMP%') EXECUTE FUNCTION check_order_escrow();
CREATE CONSTRAINT TRIGGER orders_claimed AFTER UPDATE ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_type LIKE 'OFF\_RAMP%' AND OLD.status <> NEW.status AND NEW.status IN ('processing', 'completed')) EXECUTE FUNCTION check_order_claim();
CREATE CONSTRAINT TRIGGER orders_payout_end AFTER UPDATE ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status IN ('completed', 'failed') AND NEW.order_type LIKE 'OFF\_RAMP%') EXECUTE FUNCTION check_payout_end();

CREATE TABLE operator_commands (
    id          uuid        PRIMARY KEY,
    object_type text        NOT NULL,
    object_id   uuid        NOT NULL,
    verb        text        NOT NULL CHECK (verb IN ('retry', 'refund', 'resolve')),
    note        text        NOT NULL CHECK (char_length(note) <= 500),
    actor_id    uuid        NOT NULL REFERENCES users (id),
    created_at  timestamptz NOT NULL,
    used_at     timestamptz
);
CREATE INDEX operator_commands_object_idx ON operator_commands (object_type, object_id, created_at);
-- A decision is immutable; only its use is recorded, once.
CALL same_columns('operator_commands', 'object_type, object_id, verb, note, actor_id, created_at');
CALL set_once('operator_commands', 'used_at');
