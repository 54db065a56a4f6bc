-- +goose Up
-- The ledger compared with the chains.

-- One comparison of all wallets of a network with the ledger. cursor is the last compared wallet.
CREATE TABLE reconciliation_runs (
    id          uuid        PRIMARY KEY,
    network     network     NOT NULL,
    status      text        NOT NULL,
    detail      text        NOT NULL DEFAULT '' CHECK (char_length(detail) <= 200),
    cursor      uuid,
    compared    bigint      NOT NULL DEFAULT 0,
    deferred    bigint      NOT NULL DEFAULT 0 CHECK (deferred >= 0),
    differences bigint      NOT NULL DEFAULT 0 CHECK (differences >= 0),
    started_at  timestamptz NOT NULL,
    finished_at timestamptz,
    CONSTRAINT reconciliation_runs_counts CHECK (compared >= differences),
    CONSTRAINT reconciliation_runs_finished CHECK ((status = 'running') = (finished_at IS NULL))
);
CREATE UNIQUE INDEX reconciliation_runs_running_key ON reconciliation_runs (network) WHERE status = 'running';
CREATE INDEX reconciliation_runs_list_idx ON reconciliation_runs (started_at DESC, id DESC);
CREATE INDEX reconciliation_runs_last_idx ON reconciliation_runs (network, finished_at DESC) WHERE status = 'completed';
CALL moves_by('reconciliation_runs', 'reconciliation');
CALL never_removed('reconciliation_runs');
CALL same_columns('reconciliation_runs', 'network, started_at');
CALL only_grow('reconciliation_runs', 'cursor, compared, deferred, differences');
CREATE TRIGGER reconciliation_runs_ended BEFORE UPDATE ON reconciliation_runs FOR EACH ROW
    WHEN (OLD.status <> 'running')
    EXECUTE FUNCTION refuse_change();

-- The sums of a run's wallets by the chain and by the ledger.
CREATE TABLE reconciliation_totals (
    run_id uuid   NOT NULL REFERENCES reconciliation_runs (id),
    asset  asset  NOT NULL,
    ledger amount NOT NULL,
    chain  amount NOT NULL,
    PRIMARY KEY (run_id, asset)
);
CALL never_removed('reconciliation_totals');

-- A difference from the first run that found it to the one that no longer does. A wallet and an asset have at most one
-- open one.
CREATE TABLE reconciliation_differences (
    id           uuid         PRIMARY KEY,
    network      network      NOT NULL,
    wallet_id    uuid         NOT NULL REFERENCES wallets (id),
    asset        asset        NOT NULL,
    status       text         NOT NULL,
    exception_id uuid         NOT NULL REFERENCES payment_exceptions (id),
    ledger       amount       NOT NULL,
    chain        zero_or_more NOT NULL,
    fees         zero_or_more NOT NULL,
    block        bigint       NOT NULL CHECK (block >= 0),
    block_id     text         NOT NULL CHECK (char_length(block_id) <= 128),
    block_time   timestamptz,
    first_run    uuid         NOT NULL REFERENCES reconciliation_runs (id),
    last_run     uuid         NOT NULL REFERENCES reconciliation_runs (id),
    runs         int          NOT NULL DEFAULT 1 CHECK (runs > 0),
    opened_at    timestamptz  NOT NULL,
    updated_at   timestamptz  NOT NULL,
    closed_at    timestamptz,
    version      bigint       NOT NULL DEFAULT 1,
    CONSTRAINT reconciliation_differences_exception_key UNIQUE (exception_id),
    CONSTRAINT reconciliation_differences_real CHECK (chain <> ledger),
    CONSTRAINT reconciliation_differences_closed CHECK ((status = 'closed') = (closed_at IS NOT NULL))
);
CREATE UNIQUE INDEX reconciliation_differences_open_key ON reconciliation_differences (wallet_id, asset) WHERE status = 'open';
CREATE INDEX reconciliation_differences_list_idx ON reconciliation_differences (opened_at DESC, id DESC);
CALL moves_by('reconciliation_differences', 'reconciliation_difference');
CALL never_removed('reconciliation_differences');
CALL same_columns('reconciliation_differences', 'network, wallet_id, asset, exception_id, first_run, opened_at');
CREATE TRIGGER reconciliation_differences_ended BEFORE UPDATE ON reconciliation_differences FOR EACH ROW
    WHEN (OLD.status = 'closed')
    EXECUTE FUNCTION refuse_change();

-- Each difference as a run found it.
CREATE TABLE reconciliation_items (
    run_id        uuid         NOT NULL REFERENCES reconciliation_runs (id),
    wallet_id     uuid         NOT NULL REFERENCES wallets (id),
    asset         asset        NOT NULL,
    difference_id uuid         NOT NULL REFERENCES reconciliation_differences (id),
    ledger        amount       NOT NULL,
    chain         zero_or_more NOT NULL,
    fees          zero_or_more NOT NULL,
    block         bigint       NOT NULL CHECK (block >= 0),
    block_id      text         NOT NULL CHECK (char_length(block_id) <= 128),
    block_time    timestamptz,
    PRIMARY KEY (run_id, wallet_id, asset)
);
CREATE INDEX reconciliation_items_difference_idx ON reconciliation_items (difference_id);
CALL append_only('reconciliation_items');

-- Liabilities and the assets that cover them, once a day.
CREATE TABLE reserve_reports (
    day         date         NOT NULL,
    asset       asset        NOT NULL,
    owed        zero_or_more NOT NULL,
    custody     zero_or_more NOT NULL,
    discrepancy amount       NOT NULL,
    float       zero_or_more NOT NULL,
    compared_at timestamptz,
    created_at  timestamptz  NOT NULL,
    PRIMARY KEY (day, asset)
);
CALL append_only('reserve_reports');
