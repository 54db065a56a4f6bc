-- +goose Up
-- Where merchants let their money be sent.

-- A saved destination. Its master merchant confirms it, and it rests from then on. It is never changed: other data are another
-- destination.
CREATE TABLE otc_destinations (
    id             uuid        PRIMARY KEY,
    merchant_id    uuid        NOT NULL REFERENCES users (id),
    kind           text        NOT NULL CHECK (kind IN ('phone', 'bank', 'address')),
    label          text        NOT NULL CHECK (char_length(label) <= 80),
    phone          text        NOT NULL DEFAULT '' CHECK (phone ~ '^(254[17][0-9]{8})?$'),
    bank_name      text        NOT NULL DEFAULT '' CHECK (char_length(bank_name) <= 120),
    bank_code      text        NOT NULL DEFAULT '' CHECK (bank_code ~ '^[0-9A-Z]{0,20}$'),
    branch         text        NOT NULL DEFAULT '' CHECK (char_length(branch) <= 120),
    swift_code     text        NOT NULL DEFAULT '' CHECK (swift_code ~ '^([0-9A-Z]{8}([0-9A-Z]{3})?)?$'),
    account_name   text        NOT NULL DEFAULT '' CHECK (char_length(account_name) <= 120),
    account_number text        NOT NULL DEFAULT '' CHECK (account_number ~ '^[0-9A-Z]{0,34}$'),
    network        network,
    address        text        NOT NULL DEFAULT '' CHECK (char_length(address) <= 120),
    recipient      text        NOT NULL GENERATED ALWAYS AS (CASE kind WHEN 'phone' THEN 'momo:' || phone WHEN 'bank' THEN 'bank:' || account_number
                                   ELSE network || ':' || address END) STORED, -- as releases name it
    status         text        NOT NULL,
    created_by     uuid        NOT NULL REFERENCES users (id),
    confirmed_by   uuid        REFERENCES users (id),
    confirmed_at   timestamptz, -- set by the trigger
    removed_by     uuid        REFERENCES users (id),
    removed_at     timestamptz,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    version        bigint      NOT NULL DEFAULT 1,
    CONSTRAINT otc_destinations_phone CHECK ((kind = 'phone') = (phone <> '')),
    CONSTRAINT otc_destinations_bank CHECK (CASE kind WHEN 'bank' THEN bank_name <> '' AND account_name <> '' AND account_number <> ''
        ELSE bank_name || bank_code || branch || swift_code || account_name || account_number = '' END),
    CONSTRAINT otc_destinations_address CHECK (CASE kind WHEN 'address' THEN network IS NOT NULL AND address <> '' ELSE network IS NULL AND address = '' END),
    CONSTRAINT otc_destinations_confirmed CHECK ((confirmed_by IS NULL) = (confirmed_at IS NULL)
        AND CASE status WHEN 'unconfirmed' THEN confirmed_at IS NULL WHEN 'confirmed' THEN confirmed_at IS NOT NULL ELSE true END),
    CONSTRAINT otc_destinations_removed CHECK ((removed_by IS NULL) = (removed_at IS NULL) AND (status = 'removed') = (removed_at IS NOT NULL))
);
CREATE UNIQUE INDEX otc_destinations_live_key ON otc_destinations (merchant_id, recipient, bank_name) WHERE status <> 'removed';
CREATE INDEX otc_destinations_merchant_idx ON otc_destinations (merchant_id, created_at DESC, id DESC);
CREATE INDEX otc_destinations_list_idx ON otc_destinations (created_at DESC, id DESC);
CALL moves_by('otc_destinations', 'otc_destination');
CALL never_removed('otc_destinations');
CALL same_columns('otc_destinations', 'id, merchant_id, kind, label, phone, bank_name, bank_code, branch, swift_code, account_name, account_number, network, address, '
    'created_by, created_at');
CALL set_once('otc_destinations', 'confirmed_by, confirmed_at, removed_by, removed_at');
CREATE TRIGGER otc_destinations_saved BEFORE INSERT ON otc_destinations FOR EACH ROW EXECUTE FUNCTION check_destination();
CREATE TRIGGER otc_destinations_agreed BEFORE UPDATE ON otc_destinations FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION check_destination();

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('otc_destination', '', 'unconfirmed'), ('otc_destination', 'unconfirmed', 'confirmed'), ('otc_destination', 'unconfirmed', 'removed'),
    ('otc_destination', 'confirmed', 'removed');
