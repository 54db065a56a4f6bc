-- +goose Up
-- Cold wallets never sign here, and the ledger is held against the chains.

-- Signed bytes are stored before they are sent, and nothing else is ever sent. Where the key of a cold wallet
-- would have to sign, none can be stored, whatever the service believes.
-- +goose StatementBegin
CREATE FUNCTION refuse_cold_signature() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_payments p JOIN wallets w ON w.id IN (p.wallet_id, p.fee_wallet_id) WHERE p.id = NEW.payment_id AND w.type = 'cold';
    IF FOUND THEN
        RAISE EXCEPTION 'payment % is of a cold wallet, whose key signs nothing here', NEW.payment_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_attempts_hot BEFORE INSERT ON chain_attempts FOR EACH ROW EXECUTE FUNCTION refuse_cold_signature();
-- A hot wallet may be made cold. The way back would let a key sign that was promised never to.
CREATE TRIGGER wallets_stay_cold BEFORE UPDATE ON wallets FOR EACH ROW WHEN (OLD.type = 'cold' AND NEW.type <> 'cold') EXECUTE FUNCTION refuse_change();

-- What reconciliation looks for: a network's wallets in order, and what moved above a block.
CREATE INDEX wallets_network_idx ON wallets (network, id) WHERE custody = 'custodial';
CREATE INDEX chain_deposits_final_idx ON chain_deposits (network, block) WHERE status = 'final';
CREATE INDEX chain_attempts_ended_idx ON chain_attempts (network, block) WHERE status IN ('succeeded', 'failed');
CREATE INDEX chain_attempts_alive_idx ON chain_attempts (network) WHERE status IN ('signed', 'broadcast', 'included', 'replaced');

ALTER TABLE payment_exceptions DROP CONSTRAINT payment_exceptions_kind_check, ADD CONSTRAINT payment_exceptions_kind_check CHECK (kind IN
    ('under', 'over', 'late', 'duplicate', 'wrong_asset', 'wrong_network', 'unmatched', 'paid_twice', 'reconciliation'));

-- One comparison of all wallets of a network with the ledger. cursor is the last wallet that was dealt with.
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
CREATE TRIGGER reconciliation_runs_born BEFORE INSERT ON reconciliation_runs FOR EACH ROW EXECUTE FUNCTION check_transition('reconciliation');
CREATE TRIGGER reconciliation_runs_moves BEFORE UPDATE ON reconciliation_runs FOR EACH ROW WHEN (OLD.status <> NEW.status)
    EXECUTE FUNCTION check_transition('reconciliation');
CREATE TRIGGER reconciliation_runs_ended BEFORE UPDATE ON reconciliation_runs FOR EACH ROW WHEN (OLD.status <> 'running') EXECUTE FUNCTION refuse_change();
CREATE TRIGGER reconciliation_runs_forward BEFORE UPDATE ON reconciliation_runs FOR EACH ROW
    WHEN (NEW.cursor < OLD.cursor OR NEW.compared < OLD.compared OR NEW.deferred < OLD.deferred OR NEW.differences < OLD.differences
          OR (OLD.network, OLD.started_at) IS DISTINCT FROM (NEW.network, NEW.started_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER reconciliation_runs_kept BEFORE DELETE ON reconciliation_runs FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- What the wallets of a run hold together by the chain and by the ledger.
CREATE TABLE reconciliation_totals (
    run_id uuid   NOT NULL REFERENCES reconciliation_runs (id),
    asset  asset  NOT NULL,
    ledger amount NOT NULL,
    chain  amount NOT NULL,
    PRIMARY KEY (run_id, asset)
);
CREATE TRIGGER reconciliation_totals_kept BEFORE DELETE ON reconciliation_totals FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- A difference from its first run to the one that finds it gone. There is one open one of a wallet and an asset.
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
CREATE TRIGGER reconciliation_differences_born BEFORE INSERT ON reconciliation_differences FOR EACH ROW
    EXECUTE FUNCTION check_transition('reconciliation_difference');
CREATE TRIGGER reconciliation_differences_moves BEFORE UPDATE ON reconciliation_differences FOR EACH ROW WHEN (OLD.status <> NEW.status)
    EXECUTE FUNCTION check_transition('reconciliation_difference');
CREATE TRIGGER reconciliation_differences_ended BEFORE UPDATE ON reconciliation_differences FOR EACH ROW WHEN (OLD.status = 'closed')
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER reconciliation_differences_same BEFORE UPDATE ON reconciliation_differences FOR EACH ROW
    WHEN ((OLD.network, OLD.wallet_id, OLD.asset, OLD.exception_id, OLD.first_run, OLD.opened_at)
          IS DISTINCT FROM (NEW.network, NEW.wallet_id, NEW.asset, NEW.exception_id, NEW.first_run, NEW.opened_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER reconciliation_differences_kept BEFORE DELETE ON reconciliation_differences FOR EACH ROW EXECUTE FUNCTION refuse_change();

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
CREATE TRIGGER reconciliation_items_same BEFORE UPDATE OR DELETE ON reconciliation_items FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- What is owed and what there is to pay it with, once a day.
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
CREATE TRIGGER reserve_reports_same BEFORE UPDATE OR DELETE ON reserve_reports FOR EACH ROW EXECUTE FUNCTION refuse_change();

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('reconciliation', '', 'running'),
    ('reconciliation', 'running', 'completed'),
    ('reconciliation', 'running', 'failed'),
    ('reconciliation_difference', '', 'open'),
    ('reconciliation_difference', 'open', 'closed');

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT, UPDATE ON reconciliation_runs, reconciliation_totals, reconciliation_differences TO kivuko_app;
        GRANT SELECT, INSERT ON reconciliation_items, reserve_reports TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
