-- +goose Up
-- House money: the house's accounts at banks, and journal entries.

-- What else needs two officers.
ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind;
ALTER TABLE control_changes ADD CONSTRAINT control_changes_kind CHECK (kind IN ('house_limits', 'user_limits', 'staff_access', 'momo_terms',
    'treasury_allocation', 'float_move', 'exception_decision', 'payout_attestation', 'order_address', 'refund_decision', 'database_release',
    'deny_removal', 'fee_profile', 'fx_rate', 'breaker_closed', 'quarantine_settled', 'freeze_lift', 'nonce_reopened', 'escrow_policy',
    'bank_account', 'journal_entry'));

-- An account of the house at a bank. It is written by two officers; one alone may switch it off.
CREATE TABLE bank_accounts (
    id             uuid        PRIMARY KEY,
    bank_name      text        NOT NULL CHECK (char_length(bank_name) BETWEEN 1 AND 120),
    bank_code      text        NOT NULL CHECK (bank_code ~ '^[0-9A-Z]{0,20}$'),
    branch         text        NOT NULL CHECK (char_length(branch) <= 120),
    swift_code     text        NOT NULL CHECK (swift_code ~ '^([0-9A-Z]{8}([0-9A-Z]{3})?)?$'),
    account_name   text        NOT NULL CHECK (char_length(account_name) BETWEEN 1 AND 120),
    account_number text        NOT NULL CHECK (account_number ~ '^[0-9A-Z]{1,34}$'),
    currency       asset       NOT NULL CHECK (currency = 'KES'),
    is_active      boolean     NOT NULL,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    version        bigint      NOT NULL DEFAULT 1,
    CONSTRAINT bank_accounts_number_key UNIQUE (bank_code, account_number)
);
CALL never_removed('bank_accounts');
CALL same_columns('bank_accounts', 'id, account_number, currency, created_at');
CREATE TRIGGER bank_accounts_agreed BEFORE INSERT OR UPDATE ON bank_accounts FOR EACH ROW EXECUTE FUNCTION guard_bank_account();

-- Each has an account of the ledger, and nothing else has one of the kind.
ALTER TABLE ledger_accounts DROP CONSTRAINT ledger_accounts_kind;
ALTER TABLE ledger_accounts ADD CONSTRAINT ledger_accounts_kind CHECK (kind IN ('custody', 'wallet_balance', 'fiat_balance', 'momo_collection',
    'momo_payout', 'bank', 'orders_in_flight', 'refunds_due', 'suspense', 'unclaimed', 'receivable', 'rounding', 'fees', 'network_fees', 'momo_fees',
    'bank_fees', 'capital'));
ALTER TABLE ledger_accounts DROP CONSTRAINT ledger_accounts_direction;
ALTER TABLE ledger_accounts ADD CONSTRAINT ledger_accounts_direction CHECK (debit_normal =
    (kind IN ('custody', 'momo_collection', 'momo_payout', 'bank', 'network_fees', 'momo_fees', 'bank_fees', 'receivable')));
ALTER TABLE ledger_accounts DROP CONSTRAINT ledger_accounts_limit;
ALTER TABLE ledger_accounts ADD CONSTRAINT ledger_accounts_limit CHECK (may_go_below =
    (kind IN ('rounding', 'fees', 'network_fees', 'momo_fees', 'bank_fees', 'capital')));
CREATE TRIGGER ledger_accounts_bank BEFORE INSERT ON ledger_accounts FOR EACH ROW WHEN (NEW.kind = 'bank') EXECUTE FUNCTION check_bank_ledger();

-- What happened to the house's money outside of the service. The id is that of the request.
CREATE TABLE journal_entries (
    id              uuid            PRIMARY KEY,
    kind            text            NOT NULL CHECK (kind IN ('capital_in', 'capital_out', 'bank_charge', 'float_top_up', 'float_withdrawal',
                                        'operator_charge', 'correction')),
    bank_account_id uuid            REFERENCES bank_accounts (id),
    float_account   text            CHECK (float_account IN ('working', 'utility')),
    asset           asset           NOT NULL CHECK (asset = 'KES'),
    amount          positive_amount NOT NULL,
    value_date      date            NOT NULL,
    corrects        uuid            REFERENCES journal_entries (id),
    file_id         uuid            REFERENCES files (id), -- what proves it, beside the note
    note            text            NOT NULL CHECK (char_length(note) BETWEEN 1 AND 500),
    proposed_by     uuid            NOT NULL REFERENCES users (id),
    confirmed_by    uuid            NOT NULL REFERENCES users (id),
    change_id       uuid            NOT NULL REFERENCES control_changes (id),
    booked_at       timestamptz     NOT NULL,
    CONSTRAINT journal_entries_change_key UNIQUE (change_id),
    CONSTRAINT journal_entries_corrects_key UNIQUE (corrects),
    CONSTRAINT journal_entries_apart CHECK (proposed_by <> confirmed_by),
    CONSTRAINT journal_entries_day CHECK (value_date <= (booked_at AT TIME ZONE 'Africa/Nairobi')::date),
    CONSTRAINT journal_entries_correction CHECK ((kind = 'correction') = (corrects IS NOT NULL)),
    CONSTRAINT journal_entries_bank CHECK (kind = 'correction' OR (kind <> 'operator_charge') = (bank_account_id IS NOT NULL)),
    CONSTRAINT journal_entries_float CHECK (kind = 'correction'
        OR (kind IN ('float_top_up', 'float_withdrawal', 'operator_charge')) = (float_account IS NOT NULL))
);
CREATE INDEX journal_entries_list_idx ON journal_entries (booked_at DESC, id DESC);
CREATE INDEX journal_entries_bank_idx ON journal_entries (bank_account_id, amount, value_date) WHERE bank_account_id IS NOT NULL;
CALL append_only('journal_entries');
CREATE TRIGGER journal_entries_agreed BEFORE INSERT ON journal_entries FOR EACH ROW EXECUTE FUNCTION check_journal_entry();
CREATE CONSTRAINT TRIGGER journal_entries_booked AFTER INSERT ON journal_entries DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION check_journal_booking();
CREATE CONSTRAINT TRIGGER ledger_entries_journal AFTER INSERT ON ledger_entries DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.kind LIKE 'journal.%') EXECUTE FUNCTION check_journal_source();
