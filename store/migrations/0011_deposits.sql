-- +goose Up
-- What the watch over the chains sees: how far each network was read, the blocks that are not final yet,
-- every movement that touches a wallet of ours, what was set aside, and who waits for money.

-- One row per network. final_number only grows, by one, with the movements of that block in the same
-- transaction; link_id is the id of the newest block up to there that the network did not skip.
CREATE TABLE deposit_cursors (
    network      network     PRIMARY KEY,
    started      bigint      NOT NULL CHECK (started >= 0),
    final_number bigint      NOT NULL CHECK (final_number >= started),
    final_id     text        NOT NULL CHECK (char_length(final_id) <= 128),
    final_time   timestamptz,
    link_id      text        NOT NULL CHECK (char_length(link_id) <= 128),
    started_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL
);
CREATE TRIGGER deposit_cursors_forward BEFORE UPDATE ON deposit_cursors FOR EACH ROW
    WHEN (NEW.network <> OLD.network OR NEW.started <> OLD.started OR NEW.final_number <> OLD.final_number + 1)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER deposit_cursors_kept BEFORE DELETE ON deposit_cursors FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The blocks above the cursor as they were last seen, to notice when the chain is another one.
CREATE TABLE deposit_blocks (
    network network     NOT NULL,
    number  bigint      NOT NULL CHECK (number >= 0),
    id      text        NOT NULL CHECK (char_length(id) <= 128),
    parent  text        NOT NULL CHECK (char_length(parent) <= 128),
    skipped boolean     NOT NULL,
    at      timestamptz,
    PRIMARY KEY (network, number),
    CONSTRAINT deposit_blocks_skipped CHECK (skipped = (id = ''))
);

CREATE TABLE chain_deposits (
    id             uuid         PRIMARY KEY,
    network        network      NOT NULL,
    tx_id          text         NOT NULL CHECK (char_length(tx_id) BETWEEN 1 AND 128),
    event_index    bigint       NOT NULL CHECK (event_index >= 0),
    from_address   text         NOT NULL CHECK (char_length(from_address) <= 128),
    to_address     text         NOT NULL CHECK (char_length(to_address) <= 128),
    asset          asset        NOT NULL,
    amount         zero_or_more NOT NULL,
    wallet_id      uuid         REFERENCES wallets (id),
    from_wallet_id uuid         REFERENCES wallets (id),
    kind           text         NOT NULL CHECK (kind IN ('credit', 'house', 'awaited', 'unmatched', 'own', 'outgoing', 'empty')),
    status         text         NOT NULL,
    payment_id     uuid         REFERENCES chain_payments (id),
    exception_id   uuid         REFERENCES payment_exceptions (id),
    block          bigint       NOT NULL CHECK (block >= 0),
    block_id       text         NOT NULL CHECK (char_length(block_id) BETWEEN 1 AND 128),
    block_time     timestamptz,
    created_at     timestamptz  NOT NULL,
    updated_at     timestamptz  NOT NULL,
    final_at       timestamptz,
    version        bigint       NOT NULL DEFAULT 1,
    -- A movement is the same one in whatever block its transaction is.
    CONSTRAINT chain_deposits_movement_key UNIQUE (network, tx_id, event_index),
    CONSTRAINT chain_deposits_ours CHECK (wallet_id IS NOT NULL OR from_wallet_id IS NOT NULL),
    CONSTRAINT chain_deposits_final CHECK ((status = 'final') = (final_at IS NOT NULL)),
    CONSTRAINT chain_deposits_empty CHECK ((kind = 'empty') = (amount = 0)),
    CONSTRAINT chain_deposits_own CHECK ((kind = 'own') = (payment_id IS NOT NULL)),
    CONSTRAINT chain_deposits_arrives CHECK (kind NOT IN ('credit', 'house', 'awaited', 'unmatched') OR wallet_id IS NOT NULL)
);
CREATE INDEX chain_deposits_seen_idx ON chain_deposits (network, block) WHERE status = 'seen';
CREATE INDEX chain_deposits_wallet_idx ON chain_deposits (wallet_id, created_at DESC) WHERE wallet_id IS NOT NULL;
CREATE TRIGGER chain_deposits_born BEFORE INSERT ON chain_deposits FOR EACH ROW EXECUTE FUNCTION check_transition('chain_deposit');
CREATE TRIGGER chain_deposits_moves BEFORE UPDATE ON chain_deposits FOR EACH ROW WHEN (OLD.status <> NEW.status)
    EXECUTE FUNCTION check_transition('chain_deposit');
CREATE TRIGGER chain_deposits_settled BEFORE UPDATE ON chain_deposits FOR EACH ROW WHEN (OLD.status = 'final') EXECUTE FUNCTION refuse_change();
CREATE TRIGGER chain_deposits_same BEFORE UPDATE ON chain_deposits FOR EACH ROW
    WHEN ((OLD.network, OLD.tx_id, OLD.event_index) IS DISTINCT FROM (NEW.network, NEW.tx_id, NEW.event_index))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER chain_deposits_kept BEFORE DELETE ON chain_deposits FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER chain_deposits_kept_all BEFORE TRUNCATE ON chain_deposits FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('chain_deposit', '', 'seen'),
    ('chain_deposit', 'seen', 'final'),
    ('chain_deposit', 'seen', 'orphaned'),
    ('chain_deposit', 'orphaned', 'seen'),
    ('chain_deposit', 'orphaned', 'final');

-- Movements that nobody may book before a person has looked at them.
CREATE TABLE deposit_quarantine (
    id          uuid        PRIMARY KEY,
    network     network     NOT NULL,
    block       bigint      NOT NULL CHECK (block >= 0),
    tx_id       text        NOT NULL CHECK (char_length(tx_id) <= 128),
    event_index bigint      NOT NULL CHECK (event_index >= 0),
    reason      text        NOT NULL CHECK (reason IN ('unreadable', 'invalid', 'refused', 'contradicts', 'not_our_send')),
    detail      text        NOT NULL CHECK (char_length(detail) <= 500),
    payload     jsonb       NOT NULL,
    created_at  timestamptz NOT NULL,
    settled_at  timestamptz,
    note        text        NOT NULL DEFAULT '' CHECK (char_length(note) <= 500),
    CONSTRAINT deposit_quarantine_key UNIQUE (network, tx_id, event_index, reason),
    CONSTRAINT deposit_quarantine_settled CHECK ((settled_at IS NULL) = (note = ''))
);
CREATE INDEX deposit_quarantine_open_idx ON deposit_quarantine (network, created_at) WHERE settled_at IS NULL;
CREATE TRIGGER deposit_quarantine_same BEFORE UPDATE ON deposit_quarantine FOR EACH ROW
    WHEN (OLD.settled_at IS NOT NULL
          OR (OLD.network, OLD.block, OLD.tx_id, OLD.event_index, OLD.reason, OLD.detail, OLD.payload)
          IS DISTINCT FROM (NEW.network, NEW.block, NEW.tx_id, NEW.event_index, NEW.reason, NEW.detail, NEW.payload))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER deposit_quarantine_kept BEFORE DELETE ON deposit_quarantine FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- A flow that wants to know when money comes into a wallet.
CREATE TABLE deposit_waits (
    id          uuid        PRIMARY KEY,
    wallet_id   uuid        NOT NULL REFERENCES wallets (id),
    workflow_id text        NOT NULL CHECK (char_length(workflow_id) BETWEEN 1 AND 200),
    created_at  timestamptz NOT NULL,
    ended_at    timestamptz
);
CREATE UNIQUE INDEX deposit_waits_open_key ON deposit_waits (wallet_id, workflow_id) WHERE ended_at IS NULL;

-- The signals that follow from it, written with the change that they tell of and sent afterwards.
CREATE TABLE deposit_wakeups (
    id         uuid        PRIMARY KEY,
    network    network     NOT NULL,
    wait_id    uuid        NOT NULL REFERENCES deposit_waits (id),
    deposit_id uuid        NOT NULL REFERENCES chain_deposits (id),
    version    bigint      NOT NULL, -- of the movement
    created_at timestamptz NOT NULL,
    sent_at    timestamptz,
    CONSTRAINT deposit_wakeups_key UNIQUE (wait_id, deposit_id, version)
);
CREATE INDEX deposit_wakeups_due_idx ON deposit_wakeups (network, created_at) WHERE sent_at IS NULL;

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT, UPDATE ON deposit_cursors, chain_deposits, deposit_waits, deposit_wakeups TO kivuko_app;
        GRANT SELECT, INSERT, DELETE ON deposit_blocks TO kivuko_app;
        GRANT SELECT, INSERT, UPDATE (settled_at, note) ON deposit_quarantine TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
