-- +goose Up
-- The double-entry ledger and its holds.

-- An account of the ledger. posted and held are in the direction in which the kind grows. Only the triggers below
-- write them, from the lines of entries and the amounts of holds.
CREATE TABLE ledger_accounts (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    code         text        NOT NULL,
    kind         text        NOT NULL,
    owner_id     uuid,
    asset        asset       NOT NULL,
    debit_normal boolean     NOT NULL,
    may_go_below boolean     NOT NULL,
    posted       amount      NOT NULL DEFAULT 0,
    held         amount      NOT NULL DEFAULT 0,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    -- Locking a row needs the right to update a column; the service has it only on this one.
    touched      boolean     NOT NULL DEFAULT false,
    CONSTRAINT ledger_accounts_code_key UNIQUE (code),
    CONSTRAINT ledger_accounts_code CHECK (code = kind || ':' || coalesce(owner_id::text, 'house') || ':' || asset),
    -- receivable: money paid out twice. unclaimed: customers' money too little to refund. momo_fees: the provider's
    -- charges for payouts.
    CONSTRAINT ledger_accounts_kind CHECK (kind IN ('custody', 'wallet_balance', 'fiat_balance', 'momo_collection', 'momo_payout', 'bank',
        'orders_in_flight', 'refunds_due', 'suspense', 'unclaimed', 'receivable', 'rounding', 'fees', 'network_fees', 'momo_fees', 'capital')),
    CONSTRAINT ledger_accounts_direction CHECK (debit_normal =
        (kind IN ('custody', 'momo_collection', 'momo_payout', 'bank', 'network_fees', 'momo_fees', 'receivable'))),
    CONSTRAINT ledger_accounts_limit CHECK (may_go_below = (kind IN ('rounding', 'fees', 'network_fees', 'momo_fees', 'capital'))),
    CONSTRAINT ledger_accounts_held CHECK (held >= 0),
    -- A proven payout has left the provider's account whatever is reserved by then, and its booking must not wait for
    -- float: only momo_payout may fall below what is held of it. apply_lines defines by which bookings.
    CONSTRAINT ledger_accounts_available CHECK (may_go_below OR kind = 'momo_payout' OR posted - held >= 0)
) WITH (fillfactor = 50); -- room for balance updates on the same page, without touching an index
CREATE INDEX ledger_accounts_owner_idx ON ledger_accounts (owner_id);
CALL never_removed('ledger_accounts');
CALL same_columns('ledger_accounts', 'code, kind, asset, debit_normal, may_go_below');
-- Balances change only from within a trigger; an account keeps its name and starts empty.
CREATE TRIGGER ledger_accounts_derived BEFORE UPDATE ON ledger_accounts FOR EACH ROW
    WHEN (pg_trigger_depth() = 0 AND (OLD.posted <> NEW.posted OR OLD.held <> NEW.held))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_accounts_created BEFORE INSERT ON ledger_accounts FOR EACH ROW
    WHEN (NEW.posted <> 0 OR NEW.held <> 0) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_accounts_float BEFORE UPDATE ON ledger_accounts FOR EACH ROW
    WHEN (NEW.kind = 'momo_payout' AND NEW.held > OLD.held AND NEW.posted < NEW.held) EXECUTE FUNCTION refuse_float_hold();

CREATE TABLE ledger_entries (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key         text        NOT NULL,
    digest      bytea       NOT NULL CHECK (octet_length(digest) = 16),
    kind        text        NOT NULL,
    object_type text        NOT NULL,
    object_id   uuid,
    at          timestamptz NOT NULL,
    CONSTRAINT ledger_entries_key_key UNIQUE (key),
    CONSTRAINT ledger_entries_texts CHECK (char_length(key) BETWEEN 1 AND 200 AND char_length(kind) BETWEEN 1 AND 80)
);
CREATE INDEX ledger_entries_object_idx ON ledger_entries (object_id) WHERE object_id IS NOT NULL;
CALL append_only('ledger_entries');
CREATE CONSTRAINT TRIGGER ledger_entries_allocated AFTER INSERT ON ledger_entries DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.kind = 'treasury.allocated') EXECUTE FUNCTION check_allocation();

-- A positive amount is a debit, a negative one a credit.
CREATE TABLE ledger_lines (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry_id   bigint NOT NULL REFERENCES ledger_entries (id),
    account_id bigint NOT NULL REFERENCES ledger_accounts (id),
    amount     amount NOT NULL CHECK (amount <> 0)
);
CREATE INDEX ledger_lines_entry_idx ON ledger_lines (entry_id);
CREATE INDEX ledger_lines_account_idx ON ledger_lines (account_id, id);
CALL append_only('ledger_lines');
CREATE TRIGGER ledger_lines_applied AFTER INSERT ON ledger_lines REFERENCING NEW TABLE AS new_lines
    FOR EACH STATEMENT EXECUTE FUNCTION apply_lines();

-- A hold reserves part of an account's balance. amount is what it reserves now; placed is the first requested amount,
-- which identifies a repetition.
CREATE TABLE holds (
    id          uuid            PRIMARY KEY,
    key         text            NOT NULL,
    account_id  bigint          NOT NULL REFERENCES ledger_accounts (id),
    parent_id   uuid            REFERENCES holds (id),
    placed      positive_amount NOT NULL,
    amount      zero_or_more    NOT NULL,
    status      text            NOT NULL CHECK (status IN ('held', 'captured', 'released')),
    object_type text            NOT NULL,
    object_id   uuid            NOT NULL,
    created_at  timestamptz     NOT NULL,
    updated_at  timestamptz     NOT NULL,
    CONSTRAINT holds_key_key UNIQUE (key),
    CONSTRAINT holds_key CHECK (char_length(key) BETWEEN 1 AND 200)
);
CREATE INDEX holds_parent_idx ON holds (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX holds_account_idx ON holds (account_id) WHERE status = 'held';
CALL never_removed('holds');
CALL same_columns('holds', 'account_id, key, id, placed');
CREATE TRIGGER holds_final BEFORE UPDATE ON holds FOR EACH ROW
    WHEN (OLD.status <> 'held')
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER holds_created BEFORE INSERT ON holds FOR EACH ROW
    WHEN (NEW.status <> 'held' OR NEW.amount <> NEW.placed) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER holds_applied AFTER INSERT ON holds REFERENCING NEW TABLE AS new_holds
    FOR EACH STATEMENT EXECUTE FUNCTION apply_new_holds();
CREATE TRIGGER holds_reapplied AFTER UPDATE ON holds REFERENCING OLD TABLE AS old_holds NEW TABLE AS new_holds
    FOR EACH STATEMENT EXECUTE FUNCTION apply_changed_holds();
