-- +goose Up
-- Wallets, offers, orders and the payments that carry them out. A row and the hold that it names are
-- written in one transaction, the hold last; so the references to holds are checked at its end.

CREATE TABLE wallets (
    id         uuid        PRIMARY KEY,
    owner_type text        NOT NULL CHECK (owner_type IN ('customer', 'treasury', 'merchant', 'sub_merchant')),
    owner_id   uuid        REFERENCES users (id),
    vendor_id  uuid        REFERENCES users (id),
    purpose    text        NOT NULL DEFAULT '' CHECK (purpose IN ('', 'treasury', 'gas', 'escrow')),
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
    CONSTRAINT wallets_address_key UNIQUE (network, address),
    CONSTRAINT wallets_owner CHECK ((owner_id IS NULL) = (purpose <> '')),
    CONSTRAINT wallets_vendor CHECK ((vendor_id IS NOT NULL) = (owner_type IN ('merchant', 'sub_merchant')))
);
-- One default wallet of an owner on a network.
CREATE UNIQUE INDEX wallets_default_key ON wallets (owner_id, network) WHERE is_default AND owner_id IS NOT NULL;
CREATE INDEX wallets_owner_idx ON wallets (owner_id, created_at);
CREATE INDEX wallets_vendor_idx ON wallets (vendor_id, created_at) WHERE vendor_id IS NOT NULL;
CREATE INDEX wallets_house_idx ON wallets (network, purpose) WHERE owner_id IS NULL;

CREATE TABLE wallet_keys (
    wallet_id  uuid  PRIMARY KEY REFERENCES wallets (id),
    ciphertext bytea NOT NULL CHECK (octet_length(ciphertext) BETWEEN 1 AND 4096),
    master_key text  NOT NULL,
    public_key bytea NOT NULL,
    algorithm  text  NOT NULL CHECK (algorithm IN ('secp256k1', 'ed25519'))
);
CREATE TRIGGER wallet_keys_immutable BEFORE UPDATE OR DELETE ON wallet_keys FOR EACH ROW EXECUTE FUNCTION refuse_change();

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
    -- What an offer has left is the amount of this hold and stands nowhere else.
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
CREATE TRIGGER offers_born BEFORE INSERT ON offers FOR EACH ROW EXECUTE FUNCTION check_transition('offer');
CREATE TRIGGER offers_moves BEFORE UPDATE ON offers FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION check_transition('offer');

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
    CONSTRAINT orders_hold_key UNIQUE (hold_id),
    CONSTRAINT orders_price CHECK (fiat_amount = vendor_amount + rounding_amount AND fiat_amount = trunc(fiat_amount)),
    CONSTRAINT orders_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL))
);
CREATE INDEX orders_customer_idx ON orders (customer_id, created_at DESC, id DESC);
CREATE INDEX orders_vendor_idx ON orders (vendor_id, created_at DESC, id DESC);
CREATE INDEX orders_created_idx ON orders (created_at DESC, id DESC);
CREATE INDEX orders_offer_idx ON orders (offer_id, created_at DESC) WHERE offer_id IS NOT NULL;
CREATE INDEX orders_open_idx ON orders (status, created_at DESC, id DESC) WHERE status NOT IN ('completed', 'cancelled', 'failed');
CREATE TRIGGER orders_born BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION check_transition('order');
CREATE TRIGGER orders_moves BEFORE UPDATE ON orders FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION check_transition('order');
-- What was agreed stays agreed.
CREATE TRIGGER orders_same BEFORE UPDATE ON orders FOR EACH ROW
    WHEN ((OLD.customer_id, OLD.vendor_id, OLD.offer_id, OLD.order_type, OLD.network, OLD.asset, OLD.rate, OLD.crypto_amount,
           OLD.fiat_amount, OLD.vendor_amount, OLD.rounding_amount, OLD.wallet_id, OLD.wallet_address, OLD.hold_id)
          IS DISTINCT FROM
          (NEW.customer_id, NEW.vendor_id, NEW.offer_id, NEW.order_type, NEW.network, NEW.asset, NEW.rate, NEW.crypto_amount,
           NEW.fiat_amount, NEW.vendor_amount, NEW.rounding_amount, NEW.wallet_id, NEW.wallet_address, NEW.hold_id))
    EXECUTE FUNCTION refuse_change();

CREATE TABLE payment_attempts (
    id                  uuid            PRIMARY KEY,
    direction           text            NOT NULL CHECK (direction IN ('collection', 'payout')),
    order_id            uuid            NOT NULL REFERENCES orders (id),
    refund_id           uuid,
    provider            text            NOT NULL CHECK (char_length(provider) BETWEEN 1 AND 40),
    status              text            NOT NULL,
    soft                boolean         NOT NULL DEFAULT false,
    asset               asset           NOT NULL,
    amount              positive_amount NOT NULL,
    phone               text            NOT NULL CHECK (phone ~ '^254[17][0-9]{8}$'),
    reference           text            NOT NULL CHECK (char_length(reference) BETWEEN 1 AND 12),
    token_hash          bytea           CHECK (octet_length(token_hash) = 32),
    merchant_request_id text            NOT NULL DEFAULT '',
    checkout_request_id text            NOT NULL DEFAULT '',
    conversation_id     text            NOT NULL DEFAULT '',
    result_code         text            NOT NULL DEFAULT '',
    result_text         text            NOT NULL DEFAULT '',
    receipt             text            NOT NULL DEFAULT '',
    moved               zero_or_more    NOT NULL DEFAULT 0,
    workflow_id         text            NOT NULL DEFAULT '',
    hold_id             uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    created_at          timestamptz     NOT NULL,
    submitted_at        timestamptz,
    settled_at          timestamptz,
    version             bigint          NOT NULL DEFAULT 1,
    CONSTRAINT payment_attempts_token_key UNIQUE (token_hash),
    CONSTRAINT payment_attempts_direction CHECK ((direction = 'payout') = (refund_id IS NOT NULL)),
    CONSTRAINT payment_attempts_proof CHECK (status <> 'succeeded' OR (receipt <> '' AND moved > 0))
);
-- While one try may still move money, a second may not begin: one collection of an order, one payout
-- of a refund.
CREATE UNIQUE INDEX payment_attempts_open_key ON payment_attempts (order_id, direction, coalesce(refund_id, '00000000-0000-0000-0000-000000000000'))
    WHERE status IN ('created', 'unknown', 'accepted');
-- A receipt of the operator proves one movement.
CREATE UNIQUE INDEX payment_attempts_receipt_key ON payment_attempts (receipt) WHERE receipt <> '';
CREATE INDEX payment_attempts_order_idx ON payment_attempts (order_id, created_at);
CREATE INDEX payment_attempts_refund_idx ON payment_attempts (refund_id) WHERE refund_id IS NOT NULL;
CREATE INDEX payment_attempts_checkout_idx ON payment_attempts (checkout_request_id) WHERE checkout_request_id <> '';
CREATE TRIGGER payment_attempts_born BEFORE INSERT ON payment_attempts FOR EACH ROW EXECUTE FUNCTION check_transition('payment_attempt');
CREATE TRIGGER payment_attempts_moves BEFORE UPDATE ON payment_attempts FOR EACH ROW WHEN (OLD.status <> NEW.status)
    EXECUTE FUNCTION check_transition('payment_attempt');

CREATE TABLE momo_callbacks (
    id          uuid        PRIMARY KEY,
    attempt_id  uuid        REFERENCES payment_attempts (id),
    kind        text        NOT NULL,
    remote_ip   text        NOT NULL,
    off_range   boolean     NOT NULL, -- it came from outside the operator's known addresses
    body        bytea       NOT NULL CHECK (octet_length(body) <= 65536),
    received_at timestamptz NOT NULL
);
CREATE INDEX momo_callbacks_attempt_idx ON momo_callbacks (attempt_id, received_at);
CREATE TRIGGER momo_callbacks_immutable BEFORE UPDATE OR DELETE ON momo_callbacks FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- What the operator's notices and statement rows said, once per receipt.
CREATE TABLE momo_receipts (
    receipt     text            PRIMARY KEY CHECK (char_length(receipt) BETWEEN 1 AND 40),
    channel     text            NOT NULL CHECK (channel IN ('confirmation', 'statement', 'callback', 'query')),
    asset       asset           NOT NULL,
    amount      positive_amount NOT NULL,
    reference   text            NOT NULL CHECK (char_length(reference) <= 60),
    party_hash  text            NOT NULL CHECK (char_length(party_hash) <= 64),
    paid_at     timestamptz     NOT NULL,
    received_at timestamptz     NOT NULL
);
CREATE INDEX momo_receipts_reference_idx ON momo_receipts (reference, paid_at);
CREATE TRIGGER momo_receipts_immutable BEFORE UPDATE OR DELETE ON momo_receipts FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Money that was booked as arrived, once per receipt. What goes back of it never exceeds it.
CREATE TABLE collections (
    receipt    text            PRIMARY KEY,
    attempt_id uuid            NOT NULL REFERENCES payment_attempts (id),
    order_id   uuid            NOT NULL REFERENCES orders (id),
    kind       text            NOT NULL CHECK (kind IN ('exact', 'over', 'under', 'late', 'duplicate')),
    asset      asset           NOT NULL,
    amount     positive_amount NOT NULL,
    refunded   zero_or_more    NOT NULL DEFAULT 0,
    created_at timestamptz     NOT NULL,
    CONSTRAINT collections_refunded CHECK (refunded <= amount)
);
CREATE INDEX collections_order_idx ON collections (order_id);
-- One collection pays an order.
CREATE UNIQUE INDEX collections_paying_key ON collections (order_id) WHERE kind IN ('exact', 'over', 'under');
CREATE TRIGGER collections_same BEFORE UPDATE ON collections FOR EACH ROW
    WHEN (OLD.amount <> NEW.amount OR OLD.receipt <> NEW.receipt OR OLD.order_id <> NEW.order_id OR NEW.refunded < OLD.refunded)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER collections_kept BEFORE DELETE ON collections FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE payment_exceptions (
    id         uuid            PRIMARY KEY,
    kind       text            NOT NULL CHECK (kind IN ('under', 'over', 'late', 'duplicate', 'wrong_asset', 'wrong_network', 'unmatched')),
    status     text            NOT NULL,
    order_id   uuid            REFERENCES orders (id),
    attempt_id uuid            REFERENCES payment_attempts (id),
    receipt    text            NOT NULL,
    asset      asset           NOT NULL,
    amount     positive_amount NOT NULL,
    note       text            NOT NULL CHECK (char_length(note) <= 500),
    created_at timestamptz     NOT NULL,
    updated_at timestamptz     NOT NULL,
    version    bigint          NOT NULL DEFAULT 1,
    CONSTRAINT payment_exceptions_receipt_key UNIQUE (receipt)
);
CREATE INDEX payment_exceptions_list_idx ON payment_exceptions (created_at DESC, id DESC);
CREATE INDEX payment_exceptions_order_idx ON payment_exceptions (order_id);
CREATE TRIGGER payment_exceptions_born BEFORE INSERT ON payment_exceptions FOR EACH ROW EXECUTE FUNCTION check_transition('payment_exception');
CREATE TRIGGER payment_exceptions_moves BEFORE UPDATE ON payment_exceptions FOR EACH ROW WHEN (OLD.status <> NEW.status)
    EXECUTE FUNCTION check_transition('payment_exception');

CREATE TABLE refunds (
    id           uuid            PRIMARY KEY,
    order_id     uuid            NOT NULL REFERENCES orders (id),
    attempt_id   uuid            NOT NULL REFERENCES payment_attempts (id),
    collection   text            NOT NULL REFERENCES collections (receipt),
    exception_id uuid            REFERENCES payment_exceptions (id),
    asset        asset           NOT NULL,
    amount       positive_amount NOT NULL,
    phone        text            NOT NULL CHECK (phone ~ '^254[17][0-9]{8}$'),
    reason       text            NOT NULL CHECK (char_length(reason) <= 200),
    status       text            NOT NULL,
    detail       text            NOT NULL DEFAULT '' CHECK (char_length(detail) <= 200),
    receipt      text            NOT NULL DEFAULT '',
    paid_by      uuid            REFERENCES payment_attempts (id),
    created_at   timestamptz     NOT NULL,
    updated_at   timestamptz     NOT NULL,
    completed_at timestamptz,
    version      bigint          NOT NULL DEFAULT 1,
    CONSTRAINT refunds_exception_key UNIQUE (exception_id),
    CONSTRAINT refunds_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL AND receipt <> ''))
);
-- An order as such is refunded once; exceptions have refunds of their own.
CREATE UNIQUE INDEX refunds_order_key ON refunds (order_id) WHERE exception_id IS NULL;
CREATE INDEX refunds_list_idx ON refunds (created_at DESC, id DESC);
CREATE INDEX refunds_order_idx ON refunds (order_id);
ALTER TABLE payment_attempts ADD CONSTRAINT payment_attempts_refund_fkey FOREIGN KEY (refund_id) REFERENCES refunds (id);
CREATE TRIGGER refunds_born BEFORE INSERT ON refunds FOR EACH ROW EXECUTE FUNCTION check_transition('refund');
CREATE TRIGGER refunds_moves BEFORE UPDATE ON refunds FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION check_transition('refund');
CREATE TRIGGER refunds_same BEFORE UPDATE ON refunds FOR EACH ROW
    WHEN (OLD.amount <> NEW.amount OR OLD.collection <> NEW.collection OR OLD.order_id <> NEW.order_id OR OLD.phone <> NEW.phone)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refunds_kept BEFORE DELETE ON refunds FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- count_refund takes a new refund off what its collection has left; the check on collections refuses
-- one shilling too many.
-- +goose StatementBegin
CREATE FUNCTION count_refund() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE collections SET refunded = refunded + NEW.amount
        WHERE receipt = NEW.collection AND order_id = NEW.order_id AND asset = NEW.asset;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'refund % names a collection of another order or asset', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER refunds_counted AFTER INSERT ON refunds FOR EACH ROW EXECUTE FUNCTION count_refund();

CREATE TABLE chain_payments (
    id           uuid            PRIMARY KEY,
    purpose      text            NOT NULL CHECK (purpose IN ('order', 'refund')),
    object_id    uuid            NOT NULL,
    network      network         NOT NULL,
    asset        asset           NOT NULL,
    amount       positive_amount NOT NULL,
    wallet_id    uuid            NOT NULL REFERENCES wallets (id),
    from_address text            NOT NULL,
    to_address   text            NOT NULL,
    hold_id      uuid            NOT NULL REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    intent_hash  text            NOT NULL CHECK (char_length(intent_hash) = 64),
    status       text            NOT NULL,
    detail       text            NOT NULL DEFAULT '' CHECK (char_length(detail) <= 200),
    tx_id        text            NOT NULL DEFAULT '',
    block        bigint          NOT NULL DEFAULT 0,
    fee          zero_or_more    NOT NULL DEFAULT 0,
    approved_by  text            NOT NULL CHECK (approved_by <> ''),
    created_at   timestamptz     NOT NULL,
    updated_at   timestamptz     NOT NULL,
    completed_at timestamptz,
    version      bigint          NOT NULL DEFAULT 1,
    CONSTRAINT chain_payments_object_key UNIQUE (purpose, object_id),
    CONSTRAINT chain_payments_hold_key UNIQUE (hold_id),
    CONSTRAINT chain_payments_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT chain_payments_proof CHECK (status <> 'completed' OR tx_id <> '')
);
CREATE INDEX chain_payments_open_idx ON chain_payments (status) WHERE status NOT IN ('completed', 'cancelled');
CREATE TRIGGER chain_payments_born BEFORE INSERT ON chain_payments FOR EACH ROW EXECUTE FUNCTION check_transition('chain_payment');
CREATE TRIGGER chain_payments_moves BEFORE UPDATE ON chain_payments FOR EACH ROW WHEN (OLD.status <> NEW.status)
    EXECUTE FUNCTION check_transition('chain_payment');
-- The intent that was approved never changes.
CREATE TRIGGER chain_payments_same BEFORE UPDATE ON chain_payments FOR EACH ROW
    WHEN ((OLD.purpose, OLD.object_id, OLD.network, OLD.asset, OLD.amount, OLD.wallet_id, OLD.from_address, OLD.to_address,
           OLD.hold_id, OLD.intent_hash, OLD.approved_by)
          IS DISTINCT FROM
          (NEW.purpose, NEW.object_id, NEW.network, NEW.asset, NEW.amount, NEW.wallet_id, NEW.from_address, NEW.to_address,
           NEW.hold_id, NEW.intent_hash, NEW.approved_by))
    EXECUTE FUNCTION refuse_change();

CREATE TABLE chain_attempts (
    id                uuid         PRIMARY KEY,
    payment_id        uuid         NOT NULL REFERENCES chain_payments (id),
    network           network      NOT NULL,
    n                 int          NOT NULL CHECK (n > 0),
    tx_id             text         NOT NULL CHECK (char_length(tx_id) BETWEEN 1 AND 128),
    raw               bytea        NOT NULL CHECK (octet_length(raw) BETWEEN 1 AND 131072),
    expires_at        timestamptz,
    last_valid_height bigint       NOT NULL DEFAULT 0,
    nonce             bigint       NOT NULL DEFAULT 0,
    ref_block         text         NOT NULL DEFAULT '',
    fee_limit         zero_or_more NOT NULL DEFAULT 0,
    status            text         NOT NULL,
    block             bigint       NOT NULL DEFAULT 0,
    block_id          text         NOT NULL DEFAULT '',
    fee               zero_or_more NOT NULL DEFAULT 0,
    last_code         text         NOT NULL DEFAULT '' CHECK (char_length(last_code) <= 500),
    broadcasts        int          NOT NULL DEFAULT 0,
    created_at        timestamptz  NOT NULL,
    updated_at        timestamptz  NOT NULL,
    CONSTRAINT chain_attempts_tx_key UNIQUE (network, tx_id),
    CONSTRAINT chain_attempts_n_key UNIQUE (payment_id, n)
);
-- Two live transactions of one payment could both pay.
CREATE UNIQUE INDEX chain_attempts_live_key ON chain_attempts (payment_id) WHERE status IN ('signed', 'broadcast', 'included');
-- At most one transaction of a payment ever succeeds.
CREATE UNIQUE INDEX chain_attempts_success_key ON chain_attempts (payment_id) WHERE status = 'succeeded';
CREATE TRIGGER chain_attempts_born BEFORE INSERT ON chain_attempts FOR EACH ROW EXECUTE FUNCTION check_transition('chain_attempt');
CREATE TRIGGER chain_attempts_moves BEFORE UPDATE ON chain_attempts FOR EACH ROW WHEN (OLD.status <> NEW.status)
    EXECUTE FUNCTION check_transition('chain_attempt');
CREATE TRIGGER chain_attempts_same BEFORE UPDATE ON chain_attempts FOR EACH ROW
    WHEN ((OLD.payment_id, OLD.network, OLD.n, OLD.tx_id, OLD.raw) IS DISTINCT FROM (NEW.payment_id, NEW.network, NEW.n, NEW.tx_id, NEW.raw))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER chain_attempts_kept BEFORE DELETE ON chain_attempts FOR EACH ROW EXECUTE FUNCTION refuse_change();

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
