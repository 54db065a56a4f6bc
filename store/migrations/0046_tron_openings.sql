-- +goose Up
-- Accounts of several owners that we make on TRON. Such an account begins with a key of ours, which gives it to its owners and can do nothing
-- more after that.

ALTER TABLE multisig_accounts DROP CONSTRAINT multisig_accounts_place;
ALTER TABLE multisig_accounts ADD CONSTRAINT multisig_accounts_place CHECK (NOT adopted OR custody = 'self');
ALTER TABLE multisig_accounts ADD CONSTRAINT multisig_accounts_given CHECK (adopted OR kind <> 'tron' OR (control_threshold IS NULL) = (address IS NULL));

-- The key with which an account begins. It is not a wallet's: nothing that sends money can read it.
CREATE TABLE multisig_opening_keys (
    account_id uuid  NOT NULL REFERENCES multisig_accounts (id),
    seal       int   NOT NULL DEFAULT 1 CHECK (seal >= 1), -- the highest one of an account counts
    address    text  NOT NULL CHECK (char_length(address) BETWEEN 20 AND 128),
    ciphertext bytea NOT NULL CHECK (octet_length(ciphertext) BETWEEN 1 AND 4096),
    master_key text  NOT NULL CHECK (master_key NOT LIKE 'cold:%'),
    public_key bytea NOT NULL,
    algorithm  text  NOT NULL CHECK (algorithm = 'secp256k1'),
    PRIMARY KEY (account_id, seal)
);
CREATE UNIQUE INDEX multisig_opening_keys_address_key ON multisig_opening_keys (address) WHERE seal = 1;
CREATE INDEX multisig_opening_keys_master_idx ON multisig_opening_keys (master_key);
CALL append_only('multisig_opening_keys');
CREATE TRIGGER multisig_opening_keys_true BEFORE INSERT ON multisig_opening_keys FOR EACH ROW EXECUTE FUNCTION check_opening_key();

-- The transactions that give accounts to their owners, each stored before it is sent. While one may be executed there is no other, and what they
-- say is exactly what two officers agreed to.
CREATE TABLE multisig_handovers (
    id         uuid        PRIMARY KEY,
    account_id uuid        NOT NULL REFERENCES multisig_accounts (id),
    n          int         NOT NULL CHECK (n >= 1),
    tx_id      text        NOT NULL CHECK (tx_id ~ '^[0-9a-f]{64}$'),
    joint      jsonb       NOT NULL CHECK (jsonb_typeof(joint) = 'object'),
    body       bytea       NOT NULL, -- what is signed
    raw        bytea       NOT NULL, -- with the signature, as it is sent
    expires_at timestamptz NOT NULL,
    status     text        NOT NULL,
    evidence   text        NOT NULL DEFAULT '' CHECK (char_length(evidence) <= 300),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT multisig_handovers_number_key UNIQUE (account_id, n),
    CONSTRAINT multisig_handovers_tx_key UNIQUE (tx_id),
    CONSTRAINT multisig_handovers_ended CHECK ((status = 'signed') = (evidence = ''))
);
CREATE UNIQUE INDEX multisig_handovers_alive_key ON multisig_handovers (account_id) WHERE status <> 'expired';
CALL moves_by('multisig_handovers', 'multisig_handover');
CALL never_removed('multisig_handovers');
CALL same_columns('multisig_handovers', 'id, account_id, n, tx_id, joint, body, raw, expires_at, created_at');
CREATE TRIGGER multisig_handovers_agreed BEFORE INSERT ON multisig_handovers FOR EACH ROW EXECUTE FUNCTION check_handover();
CREATE TRIGGER multisig_handovers_end BEFORE UPDATE ON multisig_handovers FOR EACH ROW EXECUTE FUNCTION check_handover_end();

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('multisig_handover', '', 'signed'), ('multisig_handover', 'signed', 'executed'), ('multisig_handover', 'signed', 'expired');

-- What an account needs to be given to its owners can take more than one payment (check_multisig_payment).
ALTER TABLE chain_payments DROP CONSTRAINT chain_payments_numbered;
ALTER TABLE chain_payments ADD CONSTRAINT chain_payments_numbered CHECK (n = 1 OR purpose IN ('gas', 'nonce_account', 'order', 'refund', 'swap_payout', 'swap_refund')
    OR purpose = 'multisig_open' AND network = 'tron' AND n <= 3);
