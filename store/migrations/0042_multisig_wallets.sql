-- +goose Up
-- Wallets of the treasury that several owners control together.

ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind;
ALTER TABLE control_changes ADD CONSTRAINT control_changes_kind CHECK (kind IN ('house_limits', 'user_limits', 'staff_access', 'momo_terms',
    'treasury_allocation', 'float_move', 'exception_decision', 'payout_attestation', 'order_address', 'refund_decision', 'database_release',
    'deny_removal', 'fee_profile', 'fx_rate', 'breaker_closed', 'quarantine_settled', 'freeze_lift', 'nonce_reopened', 'escrow_policy',
    'bank_account', 'journal_entry', 'bank_day', 'withdrawal_failure', 'fee_sweep', 'fee_sweep_rule', 'inventory_allocation', 'line_freed',
    'bank_refund', 'bank_refund_failure', 'bank_payout_refusal', 'otc_limit', 'swap_marks', 'swap_resolution', 'multisig_wallet'));

-- An account of several owners, as two officers agreed to it. Its id is that of its wallet.
CREATE TABLE multisig_accounts (
    id                uuid        PRIMARY KEY,
    change_id         uuid        NOT NULL REFERENCES control_changes (id),
    requested_by      uuid        NOT NULL REFERENCES users (id),
    network           network     NOT NULL,
    kind              text        NOT NULL,
    custody           text        NOT NULL CHECK (custody IN ('self', 'provider')),
    name              text        NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
    label             text        NOT NULL CHECK (char_length(label) <= 200),
    asset             asset       NOT NULL CHECK (asset IN ('USDT', 'USDC')),
    merchant_id       uuid        REFERENCES users (id), -- the master merchant with whom it is shared
    adopted           boolean     NOT NULL,
    address           text        CHECK (char_length(address) BETWEEN 20 AND 128),
    threshold         int         NOT NULL CHECK (threshold > 0),
    control_threshold int         CHECK (control_threshold >= threshold), -- of changes of the owners, on TRON
    policy_version    int         NOT NULL DEFAULT 1,
    approvals         int         NOT NULL CHECK (approvals BETWEEN 1 AND 10),
    status            text        NOT NULL,
    status_detail     text        NOT NULL DEFAULT '' CHECK (char_length(status_detail) <= 300),
    checked_block     bigint      CHECK (checked_block > 0), -- the final block at which its owners were read last
    checked_at        timestamptz,
    watched_from      bigint,     -- the final block of the deposit watch when the address was stored; what moves above it is noted (multisig_moves)
    opened_block      bigint      CHECK (opened_block > 0), -- the final block of the opening balance; the deposit watch books what moves above it
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    version           bigint      NOT NULL DEFAULT 1,
    CONSTRAINT multisig_accounts_change_key UNIQUE (change_id),
    CONSTRAINT multisig_accounts_kind CHECK (kind = CASE network WHEN 'ethereum' THEN 'safe' WHEN 'tron' THEN 'tron' ELSE 'spl' END),
    CONSTRAINT multisig_accounts_control CHECK (control_threshold IS NULL OR kind = 'tron'),
    CONSTRAINT multisig_accounts_place CHECK (adopted AND custody = 'self' OR NOT adopted AND kind <> 'tron'),
    CONSTRAINT multisig_accounts_address CHECK (address IS NOT NULL OR NOT adopted AND status IN ('preparing', 'refused')),
    CONSTRAINT multisig_accounts_checked CHECK ((checked_block IS NULL) = (checked_at IS NULL) AND (checked_block IS NOT NULL OR status NOT IN ('active', 'differs'))),
    CONSTRAINT multisig_accounts_opened CHECK ((opened_block IS NOT NULL) = (status IN ('active', 'differs')))
);
CREATE UNIQUE INDEX multisig_accounts_address_key ON multisig_accounts (network, address) WHERE status <> 'refused';
CREATE INDEX multisig_accounts_list_idx ON multisig_accounts (created_at DESC, id DESC);
CREATE INDEX multisig_accounts_merchant_idx ON multisig_accounts (merchant_id) WHERE merchant_id IS NOT NULL;
CALL moves_by('multisig_accounts', 'multisig_account');
CALL never_removed('multisig_accounts');
CALL same_columns('multisig_accounts', 'id, change_id, requested_by, network, kind, custody, name, label, asset, merchant_id, adopted, threshold, policy_version, approvals, created_at');
CALL set_once('multisig_accounts', 'address, control_threshold, watched_from, opened_block');
CALL only_grow('multisig_accounts', 'checked_block');
CREATE TRIGGER multisig_accounts_agreed BEFORE INSERT ON multisig_accounts FOR EACH ROW EXECUTE FUNCTION check_multisig_account();
CREATE TRIGGER multisig_accounts_steps BEFORE UPDATE ON multisig_accounts FOR EACH ROW EXECUTE FUNCTION check_multisig_step();
CREATE CONSTRAINT TRIGGER multisig_accounts_terms AFTER INSERT ON multisig_accounts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_multisig_terms();
CREATE CONSTRAINT TRIGGER multisig_accounts_end AFTER UPDATE ON multisig_accounts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_multisig_end();

-- Who controls an account. The key of an owner whose key we hold has no address before it is made.
CREATE TABLE multisig_owners (
    account_id uuid    NOT NULL REFERENCES multisig_accounts (id),
    n          int     NOT NULL CHECK (n BETWEEN 1 AND 20),
    address    text    CHECK (char_length(address) BETWEEN 20 AND 128),
    user_id    uuid    REFERENCES users (id), -- the officer who signs with it
    weight     int     NOT NULL CHECK (weight BETWEEN 1 AND 1000),
    label      text    NOT NULL CHECK (char_length(label) <= 200),
    held       boolean NOT NULL,
    PRIMARY KEY (account_id, n),
    CONSTRAINT multisig_owners_address_key UNIQUE (account_id, address),
    CONSTRAINT multisig_owners_user_key UNIQUE (account_id, user_id),
    CONSTRAINT multisig_owners_held CHECK (CASE WHEN held THEN user_id IS NOT NULL ELSE address IS NOT NULL END)
);
CALL never_removed('multisig_owners');
CALL same_columns('multisig_owners', 'account_id, n, user_id, weight, label, held');
CALL set_once('multisig_owners', 'address');
CREATE CONSTRAINT TRIGGER multisig_owners_terms AFTER INSERT ON multisig_owners DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_multisig_terms();
CREATE TRIGGER multisig_owners_address BEFORE INSERT OR UPDATE ON multisig_owners FOR EACH ROW EXECUTE FUNCTION check_owner_address();

-- The keys of owners that our key store holds. As those of wallets, they keep their earlier seals.
CREATE TABLE multisig_owner_keys (
    account_id uuid  NOT NULL,
    n          int   NOT NULL,
    seal       int   NOT NULL DEFAULT 1 CHECK (seal >= 1), -- the highest one of an owner counts
    ciphertext bytea NOT NULL CHECK (octet_length(ciphertext) BETWEEN 1 AND 4096),
    master_key text  NOT NULL CHECK (master_key NOT LIKE 'cold:%'),
    public_key bytea NOT NULL,
    algorithm  text  NOT NULL CHECK (algorithm IN ('secp256k1', 'ed25519')),
    PRIMARY KEY (account_id, n, seal),
    CONSTRAINT multisig_owner_keys_owner FOREIGN KEY (account_id, n) REFERENCES multisig_owners (account_id, n)
);
CREATE INDEX multisig_owner_keys_master_idx ON multisig_owner_keys (master_key);
CALL append_only('multisig_owner_keys');
CREATE TRIGGER multisig_owner_keys_true BEFORE INSERT ON multisig_owner_keys FOR EACH ROW EXECUTE FUNCTION check_owner_key();

-- From which value more officers approve what leaves an account.
CREATE TABLE multisig_rules (
    account_id uuid            NOT NULL REFERENCES multisig_accounts (id),
    version    int             NOT NULL,
    above      positive_amount NOT NULL, -- in shillings
    approvals  int             NOT NULL CHECK (approvals BETWEEN 1 AND 10),
    PRIMARY KEY (account_id, version, above)
);
CALL append_only('multisig_rules');
CREATE CONSTRAINT TRIGGER multisig_rules_terms AFTER INSERT ON multisig_rules DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_multisig_terms();

-- The final blocks in which something moved into or out of an account before it was a wallet. Its opening balance is read at none before them.
CREATE TABLE multisig_moves (
    account_id uuid   NOT NULL REFERENCES multisig_accounts (id),
    block      bigint NOT NULL CHECK (block >= 0),
    PRIMARY KEY (account_id, block)
);
CALL append_only('multisig_moves');

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('multisig_account', '', 'preparing'), ('multisig_account', 'preparing', 'opening'), ('multisig_account', 'preparing', 'active'),
    ('multisig_account', 'preparing', 'refused'), ('multisig_account', 'opening', 'active'), ('multisig_account', 'opening', 'refused'),
    ('multisig_account', 'active', 'differs'), ('multisig_account', 'differs', 'active');

-- The wallet of an active account. It has no key, and nothing of ours can sign for it alone.
ALTER TABLE wallets DROP CONSTRAINT wallets_purpose_check;
ALTER TABLE wallets ADD CONSTRAINT wallets_purpose_check CHECK (purpose IN ('', 'treasury', 'gas', 'escrow', 'counterpart', 'multisig'));
ALTER TABLE wallets ADD CONSTRAINT wallets_multisig CHECK ((purpose = 'multisig') = (custody = 'multisig')
    AND (purpose <> 'multisig' OR type = 'cold' AND owner_type = 'treasury' AND intent_id IS NULL AND NOT is_default));
CREATE CONSTRAINT TRIGGER wallets_multisig_end AFTER INSERT ON wallets DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.purpose = 'multisig') EXECUTE FUNCTION check_multisig_end();
CALL refuse_when('wallets', '_multisig_same', 'UPDATE', 'OLD.purpose = ''multisig'' AND (OLD.asset, OLD.label, OLD.created_by) IS DISTINCT FROM (NEW.asset, NEW.label, NEW.created_by)');
-- Each movement is in its opening balance or booked by the watch, never both.
CREATE TRIGGER chain_deposits_opened BEFORE INSERT OR UPDATE ON chain_deposits FOR EACH ROW WHEN (NEW.status = 'final' AND NEW.kind IN ('house', 'own')) EXECUTE FUNCTION refuse_opened_deposit();
-- Reconciliation reads all wallets of a network in order.
DROP INDEX wallets_network_idx;
CREATE INDEX wallets_network_idx ON wallets (network, id);

-- The payment that opens an account. It moves only what the account must hold, which is nothing where an account needs nothing.
ALTER TABLE chain_payments DROP CONSTRAINT chain_payments_purpose;
ALTER TABLE chain_payments ADD CONSTRAINT chain_payments_purpose CHECK (purpose IN ('order', 'refund', 'transfer', 'gas', 'nonce_account', 'nonce_advance', 'sweep', 'funding',
    'withdrawal', 'fee_sweep', 'swap_collect', 'swap_payout', 'swap_refund', 'multisig_open'));
ALTER TABLE chain_payments DROP CONSTRAINT chain_payments_reserved;
ALTER TABLE chain_payments ADD CONSTRAINT chain_payments_reserved CHECK ((hold_id IS NULL) = (purpose IN ('gas', 'nonce_account', 'nonce_advance', 'multisig_open')));
DROP TRIGGER chain_payments_same ON chain_payments;
ALTER TABLE chain_payments ALTER COLUMN amount TYPE zero_or_more;
ALTER TABLE chain_payments ADD CONSTRAINT chain_payments_amount CHECK (amount > 0 OR purpose = 'multisig_open');
CALL same_columns('chain_payments',
    'purpose, object_id, network, asset, amount, wallet_id, from_address, to_address, hold_id, intent_hash, approved_by, n,
     fee_wallet_id, fee_payer');
CREATE TRIGGER chain_payments_multisig BEFORE INSERT ON chain_payments FOR EACH ROW WHEN (NEW.purpose = 'multisig_open') EXECUTE FUNCTION check_multisig_payment();
CREATE TRIGGER chain_payments_multisig_signed BEFORE UPDATE ON chain_payments FOR EACH ROW
    WHEN (NEW.purpose = 'multisig_open' AND OLD.status = 'approved' AND NEW.status = 'signed') EXECUTE FUNCTION check_multisig_payment();

-- Nothing of ours goes to an account whose owners are others than were agreed.
CREATE TRIGGER chain_payments_owners BEFORE INSERT ON chain_payments FOR EACH ROW EXECUTE FUNCTION refuse_other_owners();
CREATE TRIGGER chain_payments_owners_signed BEFORE UPDATE ON chain_payments FOR EACH ROW WHEN (OLD.status = 'approved' AND NEW.status = 'signed') EXECUTE FUNCTION refuse_other_owners();
