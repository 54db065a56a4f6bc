-- +goose Up
-- Domains, shared guards, users and their sessions. Each function has a file in functions/; the numbered files contain
-- only functions used by a column, a check or an index, which must not change later.

-- An amount of money or of a coin: never a float, never NaN or infinite, and at most the 18 decimal
-- places of the finest coin. A plain numeric(38,18) would round silently; this refuses.
CREATE DOMAIN amount AS numeric
    CONSTRAINT amount_finite CHECK (VALUE > -1e24 AND VALUE < 1e24)
    CONSTRAINT amount_scale CHECK (scale(VALUE) <= 18);

CREATE DOMAIN positive_amount AS amount CONSTRAINT amount_positive CHECK (VALUE > 0);

CREATE DOMAIN zero_or_more AS amount CONSTRAINT amount_not_negative CHECK (VALUE >= 0);

CREATE DOMAIN asset AS text CONSTRAINT asset_known CHECK (VALUE IN ('USDT', 'USDC', 'KES', 'TRX', 'ETH', 'SOL'));

CREATE DOMAIN network AS text CONSTRAINT network_known CHECK (VALUE IN ('ethereum', 'tron', 'solana'));

-- asset_scale returns the decimal places of an asset.
CREATE FUNCTION asset_scale(a text) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE a WHEN 'KES' THEN 2 WHEN 'USDT' THEN 6 WHEN 'USDC' THEN 6 WHEN 'TRX' THEN 6 WHEN 'SOL' THEN 9 WHEN 'ETH' THEN 18 END
$$;

-- The transitions of the state machines. A test compares them with the definitions in the code. The transition from ''
-- leads to the initial state.
CREATE TABLE state_transitions (
    machine    text NOT NULL,
    from_state text NOT NULL,
    to_state   text NOT NULL,
    PRIMARY KEY (machine, from_state, to_state)
);

-- The guards that most tables need. A migration that extends a list calls again with the full list.

-- +goose StatementBegin
CREATE PROCEDURE refuse_when(t text, suffix text, event text, condition text DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE %s ON %I FOR EACH %s %s EXECUTE FUNCTION refuse_change()', t || suffix, event, t,
        CASE event WHEN 'TRUNCATE' THEN 'STATEMENT' ELSE 'ROW' END, 'WHEN (' || condition || ')');
END $$;
-- +goose StatementEnd

-- append_only makes the rows of a table immutable.
-- +goose StatementBegin
CREATE PROCEDURE append_only(t text) LANGUAGE plpgsql AS $$
BEGIN
    CALL refuse_when(t, '_immutable', 'UPDATE OR DELETE');
    CALL refuse_when(t, '_kept', 'TRUNCATE');
END $$;
-- +goose StatementEnd

-- never_removed forbids deleting rows of a table.
-- +goose StatementBegin
CREATE PROCEDURE never_removed(t text) LANGUAGE plpgsql AS $$
BEGIN
    CALL refuse_when(t, '_kept', 'DELETE');
    CALL refuse_when(t, '_kept_all', 'TRUNCATE');
END $$;
-- +goose StatementEnd

-- columns_of lists the columns of a text like 'a, b', each put into the condition: %1$I. Creating the trigger fails
-- for a column that the table does not have.
CREATE FUNCTION columns_of(columns text, condition text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg('(' || format(condition, c) || ')', ' OR ') FROM unnest(regexp_split_to_array(columns, ',\s*')) c
$$;

-- same_columns makes columns of a table immutable.
-- +goose StatementBegin
CREATE PROCEDURE same_columns(t text, columns text) LANGUAGE plpgsql AS $$
BEGIN
    CALL refuse_when(t, '_same', 'UPDATE', columns_of(columns, 'OLD.%1$I IS DISTINCT FROM NEW.%1$I'));
END $$;
-- +goose StatementEnd

-- set_once makes columns immutable once they have a value: neither NULL, nor '', nor false.
-- +goose StatementBegin
CREATE PROCEDURE set_once(t text, columns text) LANGUAGE plpgsql AS $$
BEGIN
    CALL refuse_when(t, '_once', 'UPDATE', columns_of(columns,
        'OLD.%1$I IS DISTINCT FROM NEW.%1$I AND coalesce(to_jsonb(OLD.%1$I), ''null'') NOT IN (''null'', ''""'', ''false'')'));
END $$;
-- +goose StatementEnd

-- only_grow forbids decreasing the values of columns.
-- +goose StatementBegin
CREATE PROCEDURE only_grow(t text, columns text) LANGUAGE plpgsql AS $$
BEGIN
    CALL refuse_when(t, '_grow', 'UPDATE', columns_of(columns, 'NEW.%1$I < OLD.%1$I'));
END $$;
-- +goose StatementEnd

-- moves_by binds the status of a table's rows to a state machine.
-- +goose StatementBegin
CREATE PROCEDURE moves_by(t text, machine text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT ON %I FOR EACH ROW EXECUTE FUNCTION check_transition(%L)', t || '_created', t, machine);
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE UPDATE ON %I FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION check_transition(%L)',
        t || '_moves', t, machine);
END $$;
-- +goose StatementEnd

-- The digest of the database's functions and grants; see Migrate.
CREATE TABLE schema_code (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    digest   text    NOT NULL
);

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
CREATE INDEX users_first_name_idx ON users (lower(first_name) text_pattern_ops);
CREATE INDEX users_last_name_idx ON users (lower(last_name) text_pattern_ops);
CREATE INDEX users_full_name_idx ON users (lower(first_name || ' ' || last_name) text_pattern_ops);
CREATE INDEX users_email_idx ON users (email text_pattern_ops);
CREATE INDEX users_phone_idx ON users (phone_number text_pattern_ops);
CREATE TRIGGER users_platform BEFORE UPDATE OR DELETE ON users FOR EACH ROW WHEN (OLD.id = '00000000-0000-7000-8000-6b6976756b6f')
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER users_named AFTER INSERT ON users REFERENCING NEW TABLE AS named FOR EACH STATEMENT EXECUTE FUNCTION learn_names();
CREATE TRIGGER users_renamed AFTER UPDATE ON users REFERENCING NEW TABLE AS named FOR EACH STATEMENT EXECUTE FUNCTION learn_names();
CREATE TRIGGER users_staff_created BEFORE INSERT ON users FOR EACH ROW WHEN (NEW.is_active AND NEW.role IN ('admin', 'treasury'))
    EXECUTE FUNCTION guard_staff();
CREATE TRIGGER users_staff_active BEFORE UPDATE ON users FOR EACH ROW
    WHEN (NEW.is_active AND NEW.role IN ('admin', 'treasury') AND (NOT OLD.is_active OR NEW.role <> OLD.role))
    EXECUTE FUNCTION guard_staff();

-- For the search by parts of names.
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE TABLE name_words (word text PRIMARY KEY);
CREATE INDEX name_words_trgm_idx ON name_words USING gin (word gin_trgm_ops);

-- The house as a vendor. It is inactive, so that no one can log in to it and it can't open offers.
INSERT INTO users (id, email, phone_number, first_name, last_name, role, is_active, password_hash, created_at, updated_at)
VALUES ('00000000-0000-7000-8000-6b6976756b6f', 'treasury@platform.invalid', '254100000000', 'Platform', 'Treasury', 'vendor', false, '', now(), now());

-- The refresh tokens of one login are a family: each use replaces the token, and the reuse of an old one ends the
-- family.
CREATE TABLE session_families (
    id         uuid        PRIMARY KEY,
    user_id    uuid        NOT NULL REFERENCES users (id),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    reason     text        NOT NULL DEFAULT ''
);
CREATE INDEX session_families_user_idx ON session_families (user_id) WHERE revoked_at IS NULL;
-- For pruning by age.
CREATE INDEX session_families_age_idx ON session_families (expires_at);

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
-- A family has one unused token.
CREATE UNIQUE INDEX sessions_live_key ON sessions (family_id) WHERE used_at IS NULL;

CREATE TABLE login_failures (
    key          text        PRIMARY KEY,
    failures     int         NOT NULL CHECK (failures >= 0),
    locked_until timestamptz,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT login_failures_key CHECK (char_length(key) BETWEEN 1 AND 200)
);
CREATE INDEX login_failures_age_idx ON login_failures (updated_at);

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
