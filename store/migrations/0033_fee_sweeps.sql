-- +goose Up
-- Earned fees: those in crypto are counted where they lie, and swept to the treasury.

ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind;
ALTER TABLE control_changes ADD CONSTRAINT control_changes_kind CHECK (kind IN ('house_limits', 'user_limits', 'staff_access', 'momo_terms',
    'treasury_allocation', 'float_move', 'exception_decision', 'payout_attestation', 'order_address', 'refund_decision', 'database_release',
    'deny_removal', 'fee_profile', 'fx_rate', 'breaker_closed', 'quarantine_settled', 'freeze_lift', 'nonce_reopened', 'escrow_policy',
    'bank_account', 'journal_entry', 'bank_day', 'withdrawal_failure', 'fee_sweep', 'fee_sweep_rule'));

-- What the house earned in a wallet of somebody else. Unlike other income it can't fall below zero: it is held like other money.
ALTER TABLE ledger_accounts DROP CONSTRAINT ledger_accounts_kind;
ALTER TABLE ledger_accounts ADD CONSTRAINT ledger_accounts_kind CHECK (kind IN ('custody', 'wallet_balance', 'fiat_balance', 'momo_collection',
    'momo_payout', 'bank', 'orders_in_flight', 'refunds_due', 'suspense', 'unclaimed', 'receivable', 'rounding', 'fees', 'wallet_fees', 'network_fees',
    'momo_fees', 'bank_fees', 'capital'));
ALTER TABLE ledger_accounts ADD CONSTRAINT ledger_accounts_wallet_fees CHECK (kind <> 'wallet_fees' OR (owner_id IS NOT NULL AND asset IN ('USDT', 'USDC')));
CREATE CONSTRAINT TRIGGER ledger_entries_earned AFTER INSERT ON ledger_entries DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.kind IN ('transfer.fee', 'exception.accepted', 'exception.written_off')) EXECUTE FUNCTION check_earned_fee();
CREATE INDEX ledger_accounts_fees_idx ON ledger_accounts (asset, posted DESC) WHERE kind IN ('fees', 'wallet_fees');

-- When a schedule sweeps by itself. Two treasury officers agree to a rule; one switches it off.
CREATE TABLE fee_sweep_rules (
    id         uuid            PRIMARY KEY,
    network    network         NOT NULL,
    asset      asset           NOT NULL CHECK (asset IN ('USDT', 'USDC')),
    threshold  positive_amount NOT NULL, -- of all wallets together
    least      positive_amount NOT NULL, -- of each wallet
    is_active  boolean         NOT NULL,
    change_id  uuid            NOT NULL REFERENCES control_changes (id),
    updated_at timestamptz     NOT NULL,
    version    bigint          NOT NULL DEFAULT 1,
    CONSTRAINT fee_sweep_rules_key UNIQUE (network, asset),
    CONSTRAINT fee_sweep_rules_least CHECK (least <= threshold)
);
CALL never_removed('fee_sweep_rules');
CALL same_columns('fee_sweep_rules', 'id, network, asset');
CREATE TRIGGER fee_sweep_rules_agreed BEFORE INSERT OR UPDATE ON fee_sweep_rules FOR EACH ROW EXECUTE FUNCTION guard_fee_sweep_rule();

-- Fees of one wallet on their way to the treasury, or shillings that were booked. No wallet has two at a time.
CREATE TABLE fee_sweeps (
    id            uuid            PRIMARY KEY,
    change_id     uuid            NOT NULL REFERENCES control_changes (id), -- the sweep that two officers agreed to, or the rule
    scheduled     boolean         NOT NULL,
    requested_by  uuid            REFERENCES users (id),
    network       network,
    asset         asset           NOT NULL,
    amount        positive_amount NOT NULL,
    wallet_id     uuid            REFERENCES wallets (id),
    value         zero_or_more    NOT NULL, -- in shillings
    hold_id       uuid            REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    status        text            NOT NULL,
    status_detail text            NOT NULL CHECK (char_length(status_detail) <= 40),
    tx_hash       text            NOT NULL DEFAULT '',
    created_at    timestamptz     NOT NULL,
    updated_at    timestamptz     NOT NULL,
    completed_at  timestamptz,
    version       bigint          NOT NULL DEFAULT 1,
    CONSTRAINT fee_sweeps_hold_key UNIQUE (hold_id),
    CONSTRAINT fee_sweeps_crypto CHECK (num_nonnulls(network, wallet_id, hold_id) = CASE asset WHEN 'KES' THEN 0 ELSE 3 END),
    CONSTRAINT fee_sweeps_asker CHECK (scheduled = (requested_by IS NULL)),
    CONSTRAINT fee_sweeps_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL))
);
CREATE UNIQUE INDEX fee_sweeps_open_key ON fee_sweeps (wallet_id, asset) WHERE status IN ('pending', 'processing');
CREATE UNIQUE INDEX fee_sweeps_change_key ON fee_sweeps (change_id, asset, wallet_id) NULLS NOT DISTINCT WHERE NOT scheduled;
CREATE INDEX fee_sweeps_list_idx ON fee_sweeps (created_at DESC, id DESC);
CALL moves_by('fee_sweeps', 'fee_sweep');
CALL never_removed('fee_sweeps');
CALL same_columns('fee_sweeps', 'id, change_id, scheduled, requested_by, network, asset, amount, wallet_id, value, hold_id, created_at');
CREATE TRIGGER fee_sweeps_agreed BEFORE INSERT ON fee_sweeps FOR EACH ROW EXECUTE FUNCTION check_fee_sweep();
CREATE CONSTRAINT TRIGGER fee_sweeps_booked AFTER INSERT OR UPDATE ON fee_sweeps DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION check_fee_sweep_booking();
CREATE CONSTRAINT TRIGGER holds_of_fee_sweeps AFTER UPDATE ON holds DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.object_type = 'fee_sweep') EXECUTE FUNCTION check_fee_sweep_booking();
CREATE CONSTRAINT TRIGGER ledger_entries_fee_sweep AFTER INSERT ON ledger_entries DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.kind = 'fee_sweep.booked') EXECUTE FUNCTION check_fee_sweep_source();
INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('fee_sweep', '', 'pending'), ('fee_sweep', 'pending', 'processing'), ('fee_sweep', 'pending', 'completed'), ('fee_sweep', 'pending', 'cancelled'),
    ('fee_sweep', 'processing', 'completed'), ('fee_sweep', 'processing', 'cancelled');

-- The house's own money needs another person wherever it goes; it does not leave the house.
INSERT INTO release_purposes (purpose, rule, rests) VALUES ('fee_sweep', 'transfer', 'It goes to the treasury, which is the house''s.');

ALTER TABLE chain_payments DROP CONSTRAINT chain_payments_purpose;
ALTER TABLE chain_payments ADD CONSTRAINT chain_payments_purpose
    CHECK (purpose IN ('order', 'refund', 'transfer', 'gas', 'nonce_account', 'nonce_advance', 'sweep', 'funding', 'withdrawal', 'fee_sweep'));
DROP TRIGGER chain_payments_escrow ON chain_payments;
CREATE CONSTRAINT TRIGGER chain_payments_escrow AFTER INSERT ON chain_payments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.purpose IN ('sweep', 'funding', 'refund', 'fee_sweep')) EXECUTE FUNCTION check_escrow_payment();
DROP TRIGGER chain_payments_escrow_signed ON chain_payments;
CREATE TRIGGER chain_payments_escrow_signed AFTER UPDATE ON chain_payments FOR EACH ROW
    WHEN (NEW.purpose IN ('sweep', 'funding', 'refund', 'fee_sweep') AND OLD.status <> NEW.status AND NEW.status = 'signed') EXECUTE FUNCTION check_escrow_payment();
