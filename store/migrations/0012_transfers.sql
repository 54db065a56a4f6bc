-- +goose Up
-- Transfers of stablecoins, and what stands between a request and a signature: spending limits, the
-- screening of counterparties, and the approval of officers.

-- What a stablecoin counts as, in shillings, when it is held against a limit. The first rates are above
-- every market's, so that limits err towards less; an admin enters better ones.
CREATE TABLE valuations (
    asset  asset       PRIMARY KEY CHECK (asset IN ('USDT', 'USDC')),
    rate   numeric     NOT NULL CHECK (rate > 0 AND rate < 1e15 AND scale(rate) <= 6),
    set_by uuid        REFERENCES users (id),
    set_at timestamptz NOT NULL
);
INSERT INTO valuations (asset, rate, set_at) VALUES ('USDT', 150, now()), ('USDC', 150, now());

-- What one user of a role may send, in shillings. NULL is no limit.
CREATE TABLE role_limits (
    role            text            PRIMARY KEY CHECK (role IN ('customer', 'user', 'vendor', 'subvendor', 'admin', 'otc_officer', 'treasury')),
    per_transaction positive_amount,
    per_day         positive_amount,
    per_month       positive_amount,
    updated_by      uuid            REFERENCES users (id),
    updated_at      timestamptz     NOT NULL
);
INSERT INTO role_limits (role, per_transaction, per_day, per_month, updated_at) VALUES
    ('user', 20000, 50000, 200000, now()),
    ('customer', 250000, 500000, 5000000, now()),
    ('vendor', 10000000, 50000000, 500000000, now()),
    ('subvendor', 10000000, 50000000, 500000000, now()),
    ('admin', NULL, NULL, NULL, now()),
    ('otc_officer', NULL, NULL, NULL, now()),
    ('treasury', NULL, NULL, NULL, now());

-- What an admin gave one user instead. NULL leaves the role's limit.
CREATE TABLE user_limits (
    user_id         uuid            PRIMARY KEY REFERENCES users (id),
    per_transaction positive_amount,
    per_day         positive_amount,
    per_month       positive_amount,
    updated_by      uuid            REFERENCES users (id),
    updated_at      timestamptz     NOT NULL
);

-- What counts against a user's limits: one row per object, given back when the object moves nothing.
CREATE TABLE limit_uses (
    object_type text            NOT NULL,
    object_id   uuid            NOT NULL,
    user_id     uuid            NOT NULL REFERENCES users (id),
    value       positive_amount NOT NULL,
    used_at     timestamptz     NOT NULL,
    released_at timestamptz,
    PRIMARY KEY (object_type, object_id)
);
CREATE INDEX limit_uses_user_idx ON limit_uses (user_id, used_at) WHERE released_at IS NULL;
CREATE TRIGGER limit_uses_same BEFORE UPDATE ON limit_uses FOR EACH ROW
    WHEN ((OLD.object_type, OLD.object_id, OLD.user_id, OLD.value, OLD.used_at, coalesce(OLD.released_at, NEW.released_at))
          IS DISTINCT FROM
          (NEW.object_type, NEW.object_id, NEW.user_id, NEW.value, NEW.used_at, NEW.released_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER limit_uses_kept BEFORE DELETE ON limit_uses FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- How many officers have to agree: one above the first amount, two above the second, in shillings.
CREATE TABLE approval_rules (
    object_type text            PRIMARY KEY CHECK (object_type IN ('transfer')),
    one_above   zero_or_more    NOT NULL,
    two_above   zero_or_more    NOT NULL,
    updated_by  uuid            REFERENCES users (id),
    updated_at  timestamptz     NOT NULL,
    CONSTRAINT approval_rules_order CHECK (two_above >= one_above)
);
INSERT INTO approval_rules (object_type, one_above, two_above, updated_at) VALUES ('transfer', 200000, 2000000, now());

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
    approvals_required  int             NOT NULL CHECK (approvals_required BETWEEN 0 AND 2),
    digest              text            NOT NULL CHECK (char_length(digest) = 64),
    status              text            NOT NULL,
    status_detail       text            NOT NULL CHECK (char_length(status_detail) <= 200),
    hold_id             uuid            NOT NULL REFERENCES holds (id) DEFERRABLE INITIALLY DEFERRED,
    tx_hash             text            NOT NULL DEFAULT '',
    created_at          timestamptz     NOT NULL,
    updated_at          timestamptz     NOT NULL,
    completed_at        timestamptz,
    version             bigint          NOT NULL DEFAULT 1,
    CONSTRAINT transfers_hold_key UNIQUE (hold_id),
    CONSTRAINT transfers_kind CHECK ((kind = 'internal') = (to_wallet_id IS NOT NULL)),
    CONSTRAINT transfers_stranger CHECK (kind = 'internal' OR (recipient_id IS NULL AND recipient_vendor_id IS NULL)),
    CONSTRAINT transfers_free CHECK (kind = 'external' OR approvals_required = 0),
    CONSTRAINT transfers_apart CHECK (from_address <> to_address),
    CONSTRAINT transfers_completed CHECK ((status = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT transfers_proof CHECK (status <> 'completed' OR tx_hash <> '')
);
CREATE INDEX transfers_sender_idx ON transfers (sender_id, created_at DESC, id DESC);
CREATE INDEX transfers_vendor_idx ON transfers (vendor_id, created_at DESC, id DESC) WHERE vendor_id IS NOT NULL;
CREATE INDEX transfers_recipient_idx ON transfers (recipient_id, created_at DESC, id DESC) WHERE recipient_id IS NOT NULL;
CREATE INDEX transfers_recipient_vendor_idx ON transfers (recipient_vendor_id, created_at DESC, id DESC) WHERE recipient_vendor_id IS NOT NULL;
CREATE INDEX transfers_created_idx ON transfers (created_at DESC, id DESC);
CREATE INDEX transfers_pending_idx ON transfers (created_at, id) WHERE status = 'pending_approval';
CREATE INDEX transfers_open_idx ON transfers (status, created_at DESC, id DESC)
    WHERE status NOT IN ('completed', 'cancelled', 'rejected', 'blocked', 'failed');

-- What screeners said of the counterparties of transfers.
CREATE TABLE screenings (
    id          uuid        PRIMARY KEY,
    transfer_id uuid        NOT NULL REFERENCES transfers (id),
    screener    text        NOT NULL CHECK (char_length(screener) BETWEEN 1 AND 80),
    verdict     text        NOT NULL CHECK (verdict IN ('clear', 'hit', 'unknown')),
    reference   text        NOT NULL CHECK (char_length(reference) <= 200),
    at          timestamptz NOT NULL
);
CREATE INDEX screenings_transfer_idx ON screenings (transfer_id, at);
CREATE TRIGGER screenings_immutable BEFORE UPDATE OR DELETE ON screenings FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER screenings_kept BEFORE TRUNCATE ON screenings FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Addresses that nobody is paid at. A line is taken off the list by a date, never erased. Addresses stand
-- in the canonical form of their network.
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
CREATE TRIGGER deny_list_same BEFORE UPDATE ON deny_list FOR EACH ROW
    WHEN ((OLD.network, OLD.address, OLD.reason, OLD.added_by, OLD.added_at, coalesce(OLD.removed_at, NEW.removed_at))
          IS DISTINCT FROM
          (NEW.network, NEW.address, NEW.reason, NEW.added_by, NEW.added_at, NEW.removed_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER deny_list_kept BEFORE DELETE ON deny_list FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The right to one decision about one object, which an officer got from the API. Only a hash of the token
-- is here. It is used once.
CREATE TABLE approval_tokens (
    id          uuid            PRIMARY KEY,
    token_hash  bytea           NOT NULL CHECK (octet_length(token_hash) = 32),
    officer_id  uuid            NOT NULL REFERENCES users (id),
    object_type text            NOT NULL CHECK (object_type IN ('transfer')),
    object_id   uuid            NOT NULL,
    action      text            NOT NULL CHECK (action IN ('approve', 'reject')),
    asset       asset           NOT NULL,
    amount      positive_amount NOT NULL,
    digest      text            NOT NULL CHECK (char_length(digest) = 64),
    door        text            NOT NULL CHECK (door IN ('api', 'signal')),
    note        text            NOT NULL CHECK (char_length(note) <= 500),
    created_at  timestamptz     NOT NULL,
    expires_at  timestamptz     NOT NULL,
    used_at     timestamptz,
    CONSTRAINT approval_tokens_hash_key UNIQUE (token_hash),
    CONSTRAINT approval_tokens_life CHECK (expires_at > created_at AND expires_at <= created_at + interval '1 hour'),
    CONSTRAINT approval_tokens_use CHECK (used_at IS NULL OR used_at < expires_at)
);
CREATE INDEX approval_tokens_object_idx ON approval_tokens (object_type, object_id);
CREATE TRIGGER approval_tokens_same BEFORE UPDATE ON approval_tokens FOR EACH ROW
    WHEN ((OLD.id, OLD.token_hash, OLD.officer_id, OLD.object_type, OLD.object_id, OLD.action, OLD.asset, OLD.amount, OLD.digest, OLD.door,
           OLD.note, OLD.created_at, OLD.expires_at, coalesce(OLD.used_at, NEW.used_at))
          IS DISTINCT FROM
          (NEW.id, NEW.token_hash, NEW.officer_id, NEW.object_type, NEW.object_id, NEW.action, NEW.asset, NEW.amount, NEW.digest, NEW.door,
           NEW.note, NEW.created_at, NEW.expires_at, NEW.used_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER approval_tokens_kept BEFORE DELETE ON approval_tokens FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The decisions that count: one per person and object, each by a token of that person for exactly it.
CREATE TABLE approvals (
    id           uuid        PRIMARY KEY,
    token_id     uuid        NOT NULL REFERENCES approval_tokens (id),
    object_type  text        NOT NULL CHECK (object_type IN ('transfer')),
    object_id    uuid        NOT NULL,
    officer_id   uuid        NOT NULL REFERENCES users (id),
    requester_id uuid        NOT NULL REFERENCES users (id),
    action       text        NOT NULL CHECK (action IN ('approve', 'reject')),
    digest       text        NOT NULL,
    created_at   timestamptz NOT NULL,
    CONSTRAINT approvals_token_key UNIQUE (token_id),
    CONSTRAINT approvals_person_key UNIQUE (object_type, object_id, officer_id),
    CONSTRAINT approvals_apart CHECK (officer_id <> requester_id)
);
CREATE TRIGGER approvals_immutable BEFORE UPDATE OR DELETE ON approvals FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER approvals_kept BEFORE TRUNCATE ON approvals FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- check_approval holds a decision against its token, its object and its officer, whoever writes it.
-- +goose StatementBegin
CREATE FUNCTION check_approval() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM approval_tokens k WHERE k.id = NEW.token_id AND k.officer_id = NEW.officer_id
            AND k.object_type = NEW.object_type AND k.object_id = NEW.object_id AND k.action = NEW.action AND k.digest = NEW.digest
            AND k.used_at IS NOT NULL) THEN
        RAISE EXCEPTION 'approval % has no token of its officer for exactly its object', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NOT EXISTS (SELECT FROM transfers f WHERE f.id = NEW.object_id AND f.requested_by = NEW.requester_id AND f.digest = NEW.digest
            AND f.status = 'pending_approval') THEN
        RAISE EXCEPTION 'approval % does not fit its transfer', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NOT EXISTS (SELECT FROM users u WHERE u.id = NEW.officer_id AND u.is_active AND u.role IN ('treasury', 'admin')) THEN
        RAISE EXCEPTION 'approval % is by nobody who may approve', NEW.id USING ERRCODE = 'KV004';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER approvals_proven BEFORE INSERT ON approvals FOR EACH ROW EXECUTE FUNCTION check_approval();

-- check_transfer holds a transfer to the way of its kind: nothing leaves our custody unscreened or with
-- fewer approvals than its value asks for, nothing is completed that the chain payment did not complete,
-- and nothing ends otherwise while a payment of it may still move money.
-- +goose StatementBegin
CREATE FUNCTION check_transfer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status IN ('screening', 'pending_approval') AND NEW.kind <> 'external' THEN
        RAISE EXCEPTION 'transfer % stays in our custody and has no %', NEW.id, NEW.status USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status = 'queued' AND NEW.kind = 'external' THEN
        IF 'clear' IS DISTINCT FROM (SELECT verdict FROM screenings WHERE transfer_id = NEW.id ORDER BY at DESC, id DESC LIMIT 1) THEN
            RAISE EXCEPTION 'transfer % is not cleared by a screening', NEW.id USING ERRCODE = 'KV001';
        END IF;
        IF NEW.approvals_required > (SELECT count(*) FROM approvals
                WHERE object_type = 'transfer' AND object_id = NEW.id AND action = 'approve' AND digest = NEW.digest) THEN
            RAISE EXCEPTION 'transfer % lacks approvals', NEW.id USING ERRCODE = 'KV001';
        END IF;
    END IF;
    IF NEW.status = 'completed' AND NOT EXISTS (SELECT FROM chain_payments
            WHERE purpose = 'transfer' AND object_id = NEW.id AND status = 'completed' AND tx_id = NEW.tx_hash) THEN
        RAISE EXCEPTION 'transfer % is not completed on its network', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status IN ('cancelled', 'rejected', 'blocked', 'failed') AND EXISTS (SELECT FROM chain_payments
            WHERE purpose = 'transfer' AND object_id = NEW.id AND status <> 'cancelled') THEN
        RAISE EXCEPTION 'transfer % has a payment that may still move money', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER transfers_born BEFORE INSERT ON transfers FOR EACH ROW EXECUTE FUNCTION check_transition('transfer');
CREATE TRIGGER transfers_moves BEFORE UPDATE ON transfers FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION check_transition('transfer');
CREATE TRIGGER transfers_way BEFORE UPDATE ON transfers FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION check_transfer();
CREATE TRIGGER transfers_same BEFORE UPDATE ON transfers FOR EACH ROW
    WHEN ((OLD.id, OLD.kind, OLD.requested_by, OLD.sender_id, OLD.vendor_id, OLD.recipient_id, OLD.recipient_vendor_id, OLD.network, OLD.asset,
           OLD.amount, OLD.wallet_id, OLD.wallet_type, OLD.from_address, OLD.to_wallet_id, OLD.to_address, OLD.note, OLD.value, OLD.rate,
           OLD.approvals_required, OLD.digest, OLD.hold_id, OLD.created_at)
          IS DISTINCT FROM
          (NEW.id, NEW.kind, NEW.requested_by, NEW.sender_id, NEW.vendor_id, NEW.recipient_id, NEW.recipient_vendor_id, NEW.network, NEW.asset,
           NEW.amount, NEW.wallet_id, NEW.wallet_type, NEW.from_address, NEW.to_wallet_id, NEW.to_address, NEW.note, NEW.value, NEW.rate,
           NEW.approvals_required, NEW.digest, NEW.hold_id, NEW.created_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER transfers_kept BEFORE DELETE ON transfers FOR EACH ROW EXECUTE FUNCTION refuse_change();

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('transfer', '', 'created'),
    ('transfer', 'created', 'screening'),
    ('transfer', 'created', 'queued'),
    ('transfer', 'created', 'cancelled'),
    ('transfer', 'screening', 'pending_approval'),
    ('transfer', 'screening', 'queued'),
    ('transfer', 'screening', 'blocked'),
    ('transfer', 'screening', 'cancelled'),
    ('transfer', 'pending_approval', 'queued'),
    ('transfer', 'pending_approval', 'rejected'),
    ('transfer', 'pending_approval', 'blocked'),
    ('transfer', 'pending_approval', 'cancelled'),
    ('transfer', 'queued', 'signing'),
    ('transfer', 'queued', 'cancelled'),
    ('transfer', 'signing', 'broadcasting'),
    ('transfer', 'signing', 'confirming'),
    ('transfer', 'signing', 'cancelled'),
    ('transfer', 'signing', 'failed'),
    ('transfer', 'broadcasting', 'confirming'),
    ('transfer', 'broadcasting', 'signing'),
    ('transfer', 'broadcasting', 'failed'),
    ('transfer', 'broadcasting', 'completed'),
    ('transfer', 'confirming', 'broadcasting'),
    ('transfer', 'confirming', 'signing'),
    ('transfer', 'confirming', 'failed'),
    ('transfer', 'confirming', 'completed');

-- A chain payment of a transfer pays what was approved and nothing else. The row is written in the
-- transaction in which the transfer is queued.
-- +goose StatementBegin
CREATE FUNCTION check_transfer_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM transfers f WHERE f.id = NEW.object_id AND f.status = 'queued' AND f.network = NEW.network AND f.asset = NEW.asset
            AND f.amount = NEW.amount AND f.wallet_id = NEW.wallet_id AND f.from_address = NEW.from_address AND f.to_address = NEW.to_address
            AND f.hold_id = NEW.hold_id) THEN
        RAISE EXCEPTION 'chain payment % is not what its transfer says', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_payments_of_transfers BEFORE INSERT ON chain_payments FOR EACH ROW WHEN (NEW.purpose = 'transfer')
    EXECUTE FUNCTION check_transfer_payment();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT, UPDATE ON transfers, limit_uses, user_limits, role_limits, valuations, approval_rules, deny_list,
            approval_tokens TO kivuko_app;
        GRANT SELECT, INSERT ON screenings, approvals TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
