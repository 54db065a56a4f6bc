-- +goose Up
-- Domains, users and their sessions, and the records of what happened: events and audit.

-- An amount of money or of a coin: never a float, never NaN or infinite, and at most the 18 decimal
-- places of the finest coin. A plain numeric(38,18) would round silently; this refuses.
CREATE DOMAIN amount AS numeric
    CONSTRAINT amount_finite CHECK (VALUE > -1e24 AND VALUE < 1e24)
    CONSTRAINT amount_scale CHECK (scale(VALUE) <= 18);

CREATE DOMAIN positive_amount AS amount CONSTRAINT amount_positive CHECK (VALUE > 0);
CREATE DOMAIN zero_or_more AS amount CONSTRAINT amount_not_negative CHECK (VALUE >= 0);

CREATE DOMAIN asset AS text CONSTRAINT asset_known CHECK (VALUE IN ('USDT', 'USDC', 'KES', 'TRX', 'ETH', 'SOL'));
CREATE DOMAIN network AS text CONSTRAINT network_known CHECK (VALUE IN ('ethereum', 'tron', 'solana'));

-- asset_scale gives the decimal places that an asset has.
CREATE FUNCTION asset_scale(a text) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE a WHEN 'KES' THEN 2 WHEN 'USDT' THEN 6 WHEN 'USDC' THEN 6 WHEN 'TRX' THEN 6 WHEN 'SOL' THEN 9 WHEN 'ETH' THEN 18 END
$$;

-- The arrows of the state machines. A test compares them with the definitions in the code. The
-- arrow from '' leads to the state in which an object is born.
CREATE TABLE state_transitions (
    machine    text NOT NULL,
    from_state text NOT NULL,
    to_state   text NOT NULL,
    PRIMARY KEY (machine, from_state, to_state)
);

-- check_transition refuses a change of status that the machine named by the trigger does not have.
-- Terminal states have no arrow out of them, so they stay terminal whoever writes.
-- +goose StatementBegin
CREATE FUNCTION check_transition() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    machine_name text := TG_ARGV[0];
    was text := '';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        was := OLD.status;
    END IF;
    IF machine_name = 'order' THEN
        machine_name := CASE WHEN NEW.order_type LIKE 'ON\_RAMP%' THEN 'on_ramp_order' ELSE 'off_ramp_order' END;
    END IF;
    IF NOT EXISTS (SELECT FROM state_transitions WHERE machine = machine_name AND from_state = was AND to_state = NEW.status) THEN
        RAISE EXCEPTION '% % can not go from % to %', machine_name, NEW.id, was, NEW.status USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- refuse_change keeps rows as they were written.
-- +goose StatementBegin
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed or removed', TG_TABLE_NAME USING ERRCODE = 'KV002';
END $$;
-- +goose StatementEnd

CREATE TABLE users (
    id            uuid        PRIMARY KEY,
    email         text        NOT NULL,
    phone_number  text        NOT NULL,
    first_name    text        NOT NULL,
    last_name     text        NOT NULL,
    role          text        NOT NULL,
    vendor_id     uuid        REFERENCES users (id),
    is_active     boolean     NOT NULL,
    verified_at   timestamptz,
    password_hash text        NOT NULL,
    pin_hash      text        NOT NULL DEFAULT '',
    auth_version  bigint      NOT NULL DEFAULT 1,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    version       bigint      NOT NULL DEFAULT 1,
    CONSTRAINT users_email_key UNIQUE (email),
    CONSTRAINT users_phone_number_key UNIQUE (phone_number),
    CONSTRAINT users_email_lower CHECK (email = lower(email) AND char_length(email) BETWEEN 3 AND 254),
    CONSTRAINT users_phone_form CHECK (phone_number ~ '^254[17][0-9]{8}$'),
    CONSTRAINT users_names CHECK (char_length(first_name) BETWEEN 1 AND 80 AND char_length(last_name) BETWEEN 1 AND 80),
    CONSTRAINT users_role CHECK (role IN ('customer', 'user', 'vendor', 'subvendor', 'admin', 'otc_officer', 'treasury')),
    CONSTRAINT users_subvendor CHECK ((role = 'subvendor') = (vendor_id IS NOT NULL)),
    CONSTRAINT users_verified CHECK (role <> 'user' OR verified_at IS NULL)
);
CREATE INDEX users_role_idx ON users (role, created_at DESC, id DESC);
CREATE INDEX users_vendor_idx ON users (vendor_id) WHERE vendor_id IS NOT NULL;

-- The refresh tokens of one login are a family: each use replaces the token, and the use of an old
-- one ends the family.
CREATE TABLE session_families (
    id         uuid        PRIMARY KEY,
    user_id    uuid        NOT NULL REFERENCES users (id),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    reason     text        NOT NULL DEFAULT ''
);
CREATE INDEX session_families_user_idx ON session_families (user_id) WHERE revoked_at IS NULL;

CREATE TABLE sessions (
    id         uuid        PRIMARY KEY,
    family_id  uuid        NOT NULL REFERENCES session_families (id) ON DELETE CASCADE,
    token_hash bytea       NOT NULL,
    ip         text        NOT NULL,
    user_agent text        NOT NULL,
    created_at timestamptz NOT NULL,
    used_at    timestamptz,
    CONSTRAINT sessions_token_key UNIQUE (token_hash),
    CONSTRAINT sessions_token_size CHECK (octet_length(token_hash) = 32),
    CONSTRAINT sessions_texts CHECK (char_length(ip) <= 64 AND char_length(user_agent) <= 512)
);
-- A family has one token that still works.
CREATE UNIQUE INDEX sessions_live_key ON sessions (family_id) WHERE used_at IS NULL;

CREATE TABLE login_failures (
    key          text        PRIMARY KEY,
    failures     int         NOT NULL CHECK (failures >= 0),
    locks        int         NOT NULL CHECK (locks >= 0),
    locked_until timestamptz,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT login_failures_key CHECK (char_length(key) BETWEEN 1 AND 200)
);

CREATE TABLE idempotency_keys (
    scope      text        NOT NULL,
    key        text        NOT NULL,
    body_hash  bytea       NOT NULL CHECK (octet_length(body_hash) = 32),
    object_id  uuid        NOT NULL,
    state      text        NOT NULL CHECK (state IN ('in_flight', 'abandoned', 'done')),
    claimed_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    status     int         NOT NULL DEFAULT 0,
    header     jsonb       NOT NULL DEFAULT '{}',
    body       bytea       NOT NULL DEFAULT '',
    PRIMARY KEY (scope, key),
    CONSTRAINT idempotency_keys_texts CHECK (char_length(scope) BETWEEN 1 AND 300 AND char_length(key) BETWEEN 1 AND 255)
);
CREATE INDEX idempotency_keys_age_idx ON idempotency_keys (created_at);

-- Positions in the logs below. A position is the number of the writing transaction, shifted, plus a
-- count within the transaction. So everything below the oldest running transaction is complete: a
-- reader that stops at log_horizon() never skips a row that commits late. A plain sequence can't do
-- that, because it is drawn in another order than transactions end. base is raised when the database
-- was restored into a server whose transaction numbers are behind (see Migrate).
CREATE TABLE log_clock (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    base     bigint  NOT NULL CHECK (base >= 0)
);
INSERT INTO log_clock (base) VALUES (0);

CREATE FUNCTION log_position() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (base + pg_current_xact_id()::text::bigint) << 20 FROM log_clock
$$;
CREATE FUNCTION log_horizon() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT (base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint) << 20 FROM log_clock
$$;

-- The event log.
CREATE TABLE events (
    cursor      bigint      PRIMARY KEY,
    object_type text        NOT NULL,
    object_id   uuid        NOT NULL,
    sequence    bigint      NOT NULL CHECK (sequence > 0),
    type        text        NOT NULL,
    owner_id    uuid,
    vendor_id   uuid,
    payload     jsonb       NOT NULL,
    at          timestamptz NOT NULL,
    CONSTRAINT events_sequence_key UNIQUE (object_type, object_id, sequence)
);
CREATE INDEX events_owner_idx ON events (owner_id, cursor) WHERE owner_id IS NOT NULL;
CREATE INDEX events_vendor_idx ON events (vendor_id, cursor) WHERE vendor_id IS NOT NULL;
CREATE TRIGGER events_immutable BEFORE UPDATE OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER events_kept BEFORE TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Who did what. Rows are appended plainly; audit_seals chains them afterwards, because a chain kept
-- inside the writing transaction would serialise all writers.
CREATE TABLE audit_log (
    id          bigint      PRIMARY KEY,
    at          timestamptz NOT NULL,
    actor       text        NOT NULL,
    role        text        NOT NULL,
    ip          text        NOT NULL,
    request_id  text        NOT NULL,
    action      text        NOT NULL,
    object_type text        NOT NULL,
    object_id   uuid        NOT NULL,
    before      jsonb,
    after       jsonb
);
CREATE INDEX audit_log_object_idx ON audit_log (object_type, object_id, id);
CREATE INDEX audit_log_actor_idx ON audit_log (actor, id);
CREATE TRIGGER audit_log_immutable BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_kept BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- hash = sha256 of the hash before it and of the row. n counts from 1 without a gap.
CREATE TABLE audit_seals (
    n         bigint      PRIMARY KEY CHECK (n > 0),
    audit_id  bigint      NOT NULL UNIQUE REFERENCES audit_log (id),
    hash      bytea       NOT NULL CHECK (octet_length(hash) = 32),
    sealed_at timestamptz NOT NULL
);
CREATE TRIGGER audit_seals_immutable BEFORE UPDATE OR DELETE ON audit_seals FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_seals_kept BEFORE TRUNCATE ON audit_seals FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
