-- +goose Up
-- People: how a session was proven and on which device, and the messages to the owners of accounts.

-- assurance_rank orders assurances: a session's never falls.
CREATE FUNCTION assurance_rank(a text) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE a WHEN 'machine' THEN 0 WHEN 'pin' THEN 1 WHEN 'password' THEN 2 WHEN 'passkey' THEN 3 END
$$;

-- is_staff is Role.Staff of the code. A test compares them.
CREATE FUNCTION is_staff(role text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT role IN ('admin', 'otc_officer', 'treasury')
$$;

-- A session's assurance is that of its strongest proof. seen_at is when its user last did something, within a minute;
-- stepped_up_at is when the user last proved itself, and stepped_up_by by what.
ALTER TABLE session_families
    ADD COLUMN assurance     text        NOT NULL,
    ADD COLUMN seen_at       timestamptz NOT NULL,
    ADD COLUMN stepped_up_at timestamptz NOT NULL,
    ADD COLUMN stepped_up_by text        NOT NULL,
    ADD CONSTRAINT session_families_assurance CHECK (coalesce(assurance_rank(stepped_up_by) <= assurance_rank(assurance), false));
CALL set_once('session_families', 'revoked_at');
CALL only_grow('session_families', 'seen_at, stepped_up_at');
CALL refuse_when('session_families', '_rises', 'UPDATE', 'assurance_rank(NEW.assurance) < assurance_rank(OLD.assurance)');
CREATE TRIGGER session_families_begun BEFORE INSERT ON session_families FOR EACH ROW EXECUTE FUNCTION check_session();

-- The devices that a user has logged in on. One that is known has counters of failures of its own, so that a stranger's
-- failures delay nobody there. A client without a device token is known by its address and name.
CREATE TABLE devices (
    id           uuid        PRIMARY KEY,
    user_id      uuid        NOT NULL REFERENCES users (id),
    origin       text        NOT NULL CHECK (char_length(origin) <= 64),
    user_agent   text        NOT NULL CHECK (char_length(user_agent) <= 512),
    created_at   timestamptz NOT NULL,
    seen_at      timestamptz NOT NULL,
    forgotten_at timestamptz,
    CONSTRAINT devices_user_key UNIQUE (id, user_id)
);
CREATE INDEX devices_client_idx ON devices (user_id, origin, user_agent) WHERE forgotten_at IS NULL;
CALL never_removed('devices');
CALL same_columns('devices', 'id, user_id, created_at');
CALL set_once('devices', 'forgotten_at');
ALTER TABLE session_families
    ADD COLUMN device_id uuid NOT NULL,
    ADD CONSTRAINT session_families_device FOREIGN KEY (device_id, user_id) REFERENCES devices (id, user_id);
CALL same_columns('session_families', 'id, user_id, device_id, created_at, expires_at');

-- Messages by SMS and e-mail. The address and the text are sealed, because they may hold codes and links, and are gone
-- when the message was sent or given up.
CREATE TABLE messages (
    id         uuid        PRIMARY KEY,
    user_id    uuid        REFERENCES users (id),
    kind       text        NOT NULL CHECK (char_length(kind) BETWEEN 1 AND 60),
    channel    text        NOT NULL CHECK (channel IN ('sms', 'email')),
    once       text        NOT NULL,
    sealed     bytea       NOT NULL CHECK (octet_length(sealed) <= 8192),
    status     text        NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'sent', 'failed')),
    attempts   int         NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    next_at    timestamptz NOT NULL,
    ended_at   timestamptz,
    CONSTRAINT messages_once_key UNIQUE (once),
    CONSTRAINT messages_gone CHECK ((status = 'waiting') = (octet_length(sealed) > 0) AND (status = 'waiting') = (ended_at IS NULL))
);
CREATE INDEX messages_due_idx ON messages (next_at) WHERE status = 'waiting';
CREATE INDEX messages_age_idx ON messages (created_at);
CALL same_columns('messages', 'id, user_id, kind, channel, once, created_at, expires_at');
CALL set_once('messages', 'ended_at');
CALL refuse_when('messages', '_over', 'UPDATE', $$OLD.status <> 'waiting'$$);

-- What a user claims to be reached at, and when it was proven by a code. A claim that nobody proved keeps nobody else out
-- for ever: who proves it gets it, and the account that claimed it has none any more.
ALTER TABLE users
    ALTER COLUMN email DROP NOT NULL,
    ALTER COLUMN phone_number DROP NOT NULL,
    ADD COLUMN email_proven_at timestamptz,
    ADD COLUMN phone_proven_at timestamptz,
    ADD CONSTRAINT users_proven CHECK ((email IS NOT NULL OR email_proven_at IS NULL) AND (phone_number IS NOT NULL OR phone_proven_at IS NULL));
CREATE TRIGGER users_contacts BEFORE UPDATE ON users FOR EACH ROW
    WHEN (OLD.email IS DISTINCT FROM NEW.email OR OLD.phone_number IS DISTINCT FROM NEW.phone_number)
    EXECUTE FUNCTION check_contacts();

-- One-time codes, which go to a number or an address: to prove it, or to set a new password.
CREATE TABLE verifications (
    id         uuid        PRIMARY KEY,
    purpose    text        NOT NULL CHECK (purpose IN ('contact', 'password')),
    channel    text        NOT NULL CHECK (channel IN ('sms', 'email')),
    contact    text        NOT NULL CHECK (char_length(contact) BETWEEN 3 AND 254),
    user_id    uuid        REFERENCES users (id), -- NULL before a registration
    code_hash  bytea       NOT NULL CHECK (octet_length(code_hash) = 32),
    guesses    int         NOT NULL DEFAULT 0 CHECK (guesses <= 5),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz,
    CONSTRAINT verifications_life CHECK (expires_at > created_at AND expires_at <= created_at + interval '1 hour'),
    CONSTRAINT verifications_account CHECK (purpose <> 'password' OR user_id IS NOT NULL)
);
CREATE INDEX verifications_contact_idx ON verifications (contact, created_at);
CREATE INDEX verifications_age_idx ON verifications (created_at);
CALL same_columns('verifications', 'id, purpose, channel, contact, user_id, code_hash, created_at, expires_at');
CALL set_once('verifications', 'used_at');
CALL only_grow('verifications', 'guesses');

-- Passkeys: the public half of a key pair in an authenticator.
CREATE TABLE passkeys (
    id            uuid        PRIMARY KEY,
    user_id       uuid        NOT NULL REFERENCES users (id),
    credential_id bytea       NOT NULL CHECK (octet_length(credential_id) BETWEEN 16 AND 1023),
    public_key    bytea       NOT NULL CHECK (octet_length(public_key) BETWEEN 16 AND 2048),
    aaguid        bytea       NOT NULL CHECK (octet_length(aaguid) = 16),
    transports    text[]      NOT NULL,
    syncable      boolean     NOT NULL, -- whether a service may keep it and bring it to other devices
    synced        boolean     NOT NULL, -- whether one does
    name          text        NOT NULL CHECK (char_length(name) BETWEEN 1 AND 80),
    sign_count    bigint      NOT NULL CHECK (sign_count >= 0),
    created_at    timestamptz NOT NULL,
    used_at       timestamptz,
    removed_at    timestamptz,
    reason        text        NOT NULL DEFAULT '',
    CONSTRAINT passkeys_credential_key UNIQUE (credential_id),
    CONSTRAINT passkeys_user_key UNIQUE (id, user_id)
);
CREATE INDEX passkeys_user_idx ON passkeys (user_id) WHERE removed_at IS NULL;
CALL never_removed('passkeys');
CALL same_columns('passkeys', 'id, user_id, credential_id, public_key, aaguid, transports, syncable, created_at');
CALL set_once('passkeys', 'removed_at, reason');
CALL only_grow('passkeys', 'sign_count');

-- A session that a passkey proved names it.
ALTER TABLE session_families
    ADD COLUMN passkey_id uuid,
    ADD CONSTRAINT session_families_passkey FOREIGN KEY (passkey_id, user_id) REFERENCES passkeys (id, user_id),
    ADD CONSTRAINT session_families_proven CHECK ((assurance = 'passkey') = (passkey_id IS NOT NULL));

-- What an authenticator is asked to sign, once.
CREATE TABLE challenges (
    id         uuid        PRIMARY KEY,
    purpose    text        NOT NULL CHECK (purpose IN ('enrol', 'step_up', 'invitation')),
    user_id    uuid        NOT NULL, -- of an invitation the account that will be
    session_id uuid        REFERENCES session_families (id) ON DELETE CASCADE,
    terms      jsonb       NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT challenges_life CHECK (expires_at > created_at AND expires_at <= created_at + interval '10 minutes'),
    CONSTRAINT challenges_session CHECK ((session_id IS NULL) = (purpose = 'invitation'))
);
CREATE INDEX challenges_age_idx ON challenges (expires_at);

-- Who works for Kivuko or for a merchant is invited, and sets its own secrets by a link that works once. An invitation of
-- an account that exists gives it new ones, when its owner has lost them.
CREATE TABLE invitations (
    id           uuid        PRIMARY KEY,
    user_id      uuid        NOT NULL, -- of the account, which may not exist yet
    token_hash   bytea       NOT NULL CHECK (octet_length(token_hash) = 32),
    role         text        NOT NULL CHECK (role NOT IN ('customer', 'user')),
    vendor_id    uuid        REFERENCES users (id),
    email        text        NOT NULL CHECK (email = lower(email) AND char_length(email) BETWEEN 3 AND 254),
    phone_number text        NOT NULL CHECK (phone_number = '' OR phone_number ~ '^254[17][0-9]{8}$'),
    first_name   text        NOT NULL CHECK (char_length(first_name) BETWEEN 1 AND 80),
    last_name    text        NOT NULL CHECK (char_length(last_name) BETWEEN 1 AND 80),
    invited_by   uuid        NOT NULL REFERENCES users (id),
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    accepted_at  timestamptz,
    withdrawn_at timestamptz,
    CONSTRAINT invitations_token_key UNIQUE (token_hash),
    CONSTRAINT invitations_life CHECK (expires_at > created_at AND expires_at <= created_at + interval '7 days'),
    CONSTRAINT invitations_subvendor CHECK ((role = 'subvendor') = (vendor_id IS NOT NULL)),
    CONSTRAINT invitations_end CHECK (accepted_at IS NULL OR withdrawn_at IS NULL),
    CONSTRAINT invitations_of_others CHECK (invited_by <> user_id)
);
CREATE UNIQUE INDEX invitations_open_key ON invitations (user_id) WHERE accepted_at IS NULL AND withdrawn_at IS NULL;
CREATE INDEX invitations_created_idx ON invitations (created_at DESC, id DESC);
CALL never_removed('invitations');
CALL same_columns('invitations', 'id, user_id, token_hash, role, vendor_id, email, phone_number, first_name, last_name, invited_by, created_at, expires_at');
CALL set_once('invitations', 'accepted_at, withdrawn_at');

-- Everybody who works for Kivuko is let in by a second person, whose sight of it is who was invited and with which passkey.
CREATE OR REPLACE TRIGGER users_staff_created BEFORE INSERT ON users FOR EACH ROW WHEN (NEW.is_active AND is_staff(NEW.role))
    EXECUTE FUNCTION guard_staff();
CREATE OR REPLACE TRIGGER users_staff_active BEFORE UPDATE ON users FOR EACH ROW
    WHEN (NEW.is_active AND is_staff(NEW.role) AND (NOT OLD.is_active OR NEW.role <> OLD.role))
    EXECUTE FUNCTION guard_staff();
