-- +goose Up
-- Transfers of stablecoins, and the screening of counterparties.

CREATE TABLE transfers (
    id                  uuid            PRIMARY KEY,
    kind                text            NOT NULL CHECK (kind IN ('internal', 'external')),
    requested_by        uuid            NOT NULL REFERENCES users (id),
    sender_id           uuid            REFERENCES users (id),
    vendor_id           uuid            REFERENCES users (id),
    recipient_id        uuid            REFERENCES users (id),
    recipient_vendor_id uuid            REFERENCES users (id),
    network             network         NOT NULL,
    asset               asset           NOT NULL CHECK (asset IN ('USDT', 'USDC')),
    amount              positive_amount NOT NULL,
    wallet_id           uuid            NOT NULL REFERENCES wallets (id),
    wallet_type         text            NOT NULL CHECK (wallet_type IN ('hot', 'cold')),
    from_address        text            NOT NULL,
    to_wallet_id        uuid            REFERENCES wallets (id),
    to_address          text            NOT NULL CHECK (char_length(to_address) BETWEEN 20 AND 128),
    note                text            NOT NULL CHECK (char_length(note) <= 200),
    value               positive_amount NOT NULL,
    rate                numeric         NOT NULL CHECK (rate > 0),
    digest              text            NOT NULL CHECK (char_length(digest) = 64),
    status              text            NOT NULL,
    status_detail       text            NOT NULL CHECK (char_length(status_detail) <= 200),
    hold_id             uuid            NOT NULL REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    tx_hash             text            NOT NULL DEFAULT '',
    created_at          timestamptz     NOT NULL,
    updated_at          timestamptz     NOT NULL,
    completed_at        timestamptz,
    version             bigint          NOT NULL DEFAULT 1,
    fee                 zero_or_more    NOT NULL DEFAULT 0, -- the sender's fee besides the amount, in the same coin
    fee_profile_id      uuid            REFERENCES fee_profiles (id),
    fee_hold_id         uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    fx_quote_id         uuid            REFERENCES fx_quotes (id),
    fiat_currency       asset           CHECK (fiat_currency = 'KES'),
    fiat_amount         positive_amount,
    fiat_rate           numeric         CHECK (fiat_rate > 0 AND fiat_rate < 1e15),
    CONSTRAINT transfers_hold_key UNIQUE (hold_id),
    CONSTRAINT transfers_kind CHECK ((kind = 'internal') = (to_wallet_id IS NOT NULL)),
    CONSTRAINT transfers_stranger CHECK (kind = 'internal' OR (recipient_id IS NULL AND recipient_vendor_id IS NULL)),
    CONSTRAINT transfers_apart CHECK (from_address <> to_address),
    CONSTRAINT transfers_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT transfers_proof CHECK (status <> 'completed' OR tx_hash <> ''),
    CONSTRAINT transfers_fee_scale CHECK (scale(fee) <= asset_scale(asset)),
    CONSTRAINT transfers_fee_by CHECK (fee = 0 OR fee_profile_id IS NOT NULL),
    CONSTRAINT transfers_fee_held CHECK ((fee > 0) = (fee_hold_id IS NOT NULL)),
    CONSTRAINT transfers_fee_hold_key UNIQUE (fee_hold_id),
    CONSTRAINT transfers_fx_quote_key UNIQUE (fx_quote_id),
    CONSTRAINT transfers_quoted CHECK (num_nulls(fx_quote_id, fiat_currency, fiat_amount, fiat_rate) IN (0, 4))
);
CREATE INDEX transfers_sender_idx ON transfers (sender_id, created_at DESC, id DESC);
CREATE INDEX transfers_vendor_idx ON transfers (vendor_id, created_at DESC, id DESC) WHERE vendor_id IS NOT NULL;
CREATE INDEX transfers_recipient_idx ON transfers (recipient_id, created_at DESC, id DESC) WHERE recipient_id IS NOT NULL;
CREATE INDEX transfers_recipient_vendor_idx ON transfers (recipient_vendor_id, created_at DESC, id DESC) WHERE recipient_vendor_id IS NOT NULL;
CREATE INDEX transfers_created_idx ON transfers (created_at DESC, id DESC);
CREATE INDEX transfers_pending_idx ON transfers (created_at, id) WHERE status = 'pending_approval';
CREATE INDEX transfers_open_idx ON transfers (status, created_at DESC, id DESC)
    WHERE status NOT IN ('completed', 'cancelled', 'rejected', 'blocked', 'failed');
CALL moves_by('transfers', 'transfer');
CALL never_removed('transfers');
CALL same_columns('transfers',
    'id, kind, requested_by, sender_id, vendor_id, recipient_id, recipient_vendor_id, network, asset, amount, wallet_id,
     wallet_type, from_address, to_wallet_id, to_address, note, value, rate, digest, hold_id, created_at,
     fee, fee_profile_id, fee_hold_id, fx_quote_id, fiat_currency, fiat_amount, fiat_rate');
CREATE TRIGGER transfers_way BEFORE UPDATE ON transfers FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION check_transfer();
CREATE TRIGGER transfers_terms BEFORE INSERT ON transfers FOR EACH ROW EXECUTE FUNCTION check_transfer_terms();
CREATE TRIGGER transfers_price BEFORE INSERT ON transfers FOR EACH ROW WHEN (NEW.fx_quote_id IS NOT NULL OR NEW.fee_profile_id IS NOT NULL)
    EXECUTE FUNCTION check_transfer_price();
CREATE CONSTRAINT TRIGGER transfers_fee AFTER UPDATE ON transfers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.fee > 0 AND NEW.status IN ('completed', 'cancelled', 'rejected', 'failed')) EXECUTE FUNCTION check_transfer_fee();
CREATE TRIGGER transfers_not_to_escrow BEFORE INSERT ON transfers FOR EACH ROW EXECUTE FUNCTION refuse_escrow_transfer();
CREATE TRIGGER transfers_not_to_counterpart BEFORE INSERT ON transfers FOR EACH ROW EXECUTE FUNCTION refuse_counterpart_recipient();

-- Screening results of counterparties: a transfer's recipient, another payment's recipient just before signing, and
-- the senders of a deposit for an order.
CREATE TABLE screenings (
    id          uuid        PRIMARY KEY,
    transfer_id uuid        REFERENCES transfers (id),
    screener    text        NOT NULL CHECK (char_length(screener) BETWEEN 1 AND 80),
    verdict     text        NOT NULL CHECK (verdict IN ('clear', 'hit', 'unknown')),
    reference   text        NOT NULL CHECK (char_length(reference) <= 200),
    at          timestamptz NOT NULL,
    payment_id  uuid        REFERENCES chain_payments (id),
    deposit_id  uuid        REFERENCES chain_deposits (id),
    CONSTRAINT screenings_object CHECK (num_nonnulls(transfer_id, payment_id, deposit_id) = 1)
);
CREATE INDEX screenings_transfer_idx ON screenings (transfer_id, at);
CREATE INDEX screenings_payment_idx ON screenings (payment_id, at) WHERE payment_id IS NOT NULL;
CREATE INDEX screenings_deposit_idx ON screenings (deposit_id, at) WHERE deposit_id IS NOT NULL;
CALL append_only('screenings');

-- Addresses that are never paid. An entry is taken off the list by a date, never erased. Addresses are in the
-- canonical form of their network.
CREATE TABLE deny_list (
    id         uuid        PRIMARY KEY,
    network    network     NOT NULL,
    address    text        NOT NULL CHECK (char_length(address) BETWEEN 20 AND 128),
    reason     text        NOT NULL CHECK (char_length(reason) BETWEEN 1 AND 500),
    added_by   uuid        NOT NULL REFERENCES users (id),
    added_at   timestamptz NOT NULL,
    removed_by uuid        REFERENCES users (id),
    removed_at timestamptz,
    CONSTRAINT deny_list_removed CHECK ((removed_by IS NULL) = (removed_at IS NULL))
);
CREATE UNIQUE INDEX deny_list_address_key ON deny_list (network, address) WHERE removed_at IS NULL;
CALL never_removed('deny_list');
CALL same_columns('deny_list', 'network, address, reason, added_by, added_at');
CALL set_once('deny_list', 'removed_at');
