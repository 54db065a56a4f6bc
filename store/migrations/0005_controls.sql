-- +goose Up
-- The controls: spending limits, approvals of officers, and changes that need two officers. One proposes, another
-- confirms, and the change takes effect in the transaction of the confirmation. A change that only tightens the
-- controls takes effect at once.

CREATE TABLE control_changes (
    id          uuid        PRIMARY KEY,
    kind        text        NOT NULL,
    subject_id  uuid        REFERENCES users (id),
    was         jsonb       NOT NULL,
    change      jsonb       NOT NULL,
    proposed_by uuid        NOT NULL REFERENCES users (id),
    proposed_at timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    status      text        NOT NULL,
    decided_by  uuid        REFERENCES users (id),
    decided_at  timestamptz,
    note        text        NOT NULL DEFAULT '' CHECK (char_length(note) <= 500),
    -- The transaction of the confirmation. The guards below allow loosening a control only in this one.
    applied_in  xid8,
    CONSTRAINT control_changes_subject CHECK ((kind IN ('user_limits', 'staff_access')) = (subject_id IS NOT NULL)),
    CONSTRAINT control_changes_life CHECK (expires_at > proposed_at AND expires_at <= proposed_at + interval '7 days'),
    CONSTRAINT control_changes_decided CHECK ((status = 'pending') = (decided_by IS NULL) AND (decided_by IS NULL) = (decided_at IS NULL)),
    CONSTRAINT control_changes_apart CHECK (status <> 'confirmed' OR (decided_by <> proposed_by AND decided_by IS DISTINCT FROM subject_id)),
    CONSTRAINT control_changes_in_time CHECK (status <> 'confirmed' OR decided_at < expires_at),
    CONSTRAINT control_changes_kind CHECK (kind IN ('house_limits', 'user_limits', 'staff_access', 'momo_terms', 'treasury_allocation',
        'float_move', 'exception_decision', 'payout_attestation', 'order_address', 'refund_decision', 'database_release', 'deny_removal', 'fee_profile', 'fx_rate',
        'breaker_closed', 'quarantine_settled', 'freeze_lift', 'nonce_reopened', 'escrow_policy'))
);
CREATE INDEX control_changes_pending_idx ON control_changes (proposed_at, id) WHERE status = 'pending';
CREATE INDEX control_changes_subject_idx ON control_changes (subject_id) WHERE subject_id IS NOT NULL AND status = 'pending';
CREATE INDEX control_changes_proposed_idx ON control_changes (proposed_at DESC, id DESC);
CREATE INDEX control_changes_applied_idx ON control_changes (applied_in) WHERE applied_in IS NOT NULL;
CREATE INDEX control_changes_refund_idx ON control_changes ((change ->> 'object_id')) WHERE kind = 'refund_decision';
CALL moves_by('control_changes', 'control_change');
CALL never_removed('control_changes');
CALL same_columns('control_changes', 'id, kind, subject_id, was, change, proposed_by, proposed_at, expires_at');
CREATE TRIGGER control_changes_closed BEFORE UPDATE ON control_changes FOR EACH ROW
    WHEN (OLD.status <> 'pending')
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER control_changes_officers BEFORE INSERT OR UPDATE ON control_changes FOR EACH ROW EXECUTE FUNCTION check_control_change();

-- limit_rises reports whether a limit is raised or lifted. NULL is no limit.
CREATE FUNCTION limit_rises(was numeric, now numeric) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT was IS NOT NULL AND (now IS NULL OR now > was)
$$;

-- The value of a stablecoin in shillings for limits. The first rates are above every market's, so that limits are too
-- strict rather than too loose; an admin enters better ones.
CREATE TABLE valuations (
    asset  asset       PRIMARY KEY CHECK (asset IN ('USDT', 'USDC')),
    rate   numeric     NOT NULL CHECK (rate > 0 AND rate < 1e15 AND scale(rate) <= 6),
    set_by uuid        REFERENCES users (id),
    set_at timestamptz NOT NULL,
    agreed numeric     CHECK (agreed > 0) -- the value that two officers agreed; NULL before that
);
INSERT INTO valuations (asset, rate, set_at) VALUES ('USDT', 150, now()), ('USDC', 150, now());
CREATE TRIGGER valuations_guarded BEFORE UPDATE ON valuations FOR EACH ROW WHEN (NEW.rate < OLD.rate OR OLD.asset <> NEW.asset)
    EXECUTE FUNCTION guard_valuation();
CREATE TRIGGER valuations_agreed BEFORE INSERT OR UPDATE ON valuations FOR EACH ROW EXECUTE FUNCTION fill_agreed_valuation();

-- The limits of one user of a role, in shillings. NULL is no limit.
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
CREATE TRIGGER role_limits_guarded BEFORE UPDATE ON role_limits FOR EACH ROW
    WHEN (limit_rises(OLD.per_transaction, NEW.per_transaction) OR limit_rises(OLD.per_day, NEW.per_day)
        OR limit_rises(OLD.per_month, NEW.per_month) OR OLD.role <> NEW.role)
    EXECUTE FUNCTION guard_role_limits();

-- A user's own limits, set by an admin. NULL means the role's limit.
CREATE TABLE user_limits (
    user_id         uuid            PRIMARY KEY REFERENCES users (id),
    per_transaction positive_amount,
    per_day         positive_amount,
    per_month       positive_amount,
    updated_by      uuid            REFERENCES users (id),
    updated_at      timestamptz     NOT NULL
);
CREATE TRIGGER user_limits_guarded BEFORE INSERT OR UPDATE ON user_limits FOR EACH ROW EXECUTE FUNCTION guard_user_limits();

-- Values counted against a user's limits: one row per object, released when the object moves nothing.
CREATE TABLE limit_uses (
    object_type text            NOT NULL,
    object_id   uuid            NOT NULL,
    user_id     uuid            NOT NULL REFERENCES users (id),
    value       positive_amount NOT NULL,
    used_at     timestamptz     NOT NULL,
    released_at timestamptz,
    merchant_id uuid            REFERENCES users (id), -- transfers of a merchant and its subvendors count against the merchant
    PRIMARY KEY (object_type, object_id)
);
CREATE INDEX limit_uses_user_idx ON limit_uses (user_id, used_at) INCLUDE (value) WHERE released_at IS NULL;
CREATE INDEX limit_uses_merchant_idx ON limit_uses (merchant_id, used_at) INCLUDE (value) WHERE released_at IS NULL AND merchant_id IS NOT NULL;
CALL never_removed('limit_uses');
CALL same_columns('limit_uses', 'object_type, object_id, user_id, value, used_at, merchant_id');
CALL set_once('limit_uses', 'released_at');
CREATE TRIGGER limit_uses_merchant BEFORE INSERT ON limit_uses FOR EACH ROW EXECUTE FUNCTION fill_limit_merchant();

-- How many officers have to approve: one above the first amount, two above the second, in shillings.
CREATE TABLE approval_rules (
    object_type text            PRIMARY KEY CHECK (object_type IN ('transfer', 'bank_payout', 'refund')),
    one_above   zero_or_more    NOT NULL,
    two_above   zero_or_more    NOT NULL,
    updated_by  uuid            REFERENCES users (id),
    updated_at  timestamptz     NOT NULL,
    CONSTRAINT approval_rules_order CHECK (two_above >= one_above),
    -- One officer always confirms a bank payout, and two above one value: its rule has only one value.
    CONSTRAINT approval_rules_bank CHECK (object_type <> 'bank_payout' OR two_above = one_above)
);
INSERT INTO approval_rules (object_type, one_above, two_above, updated_at) VALUES
    ('transfer', 200000, 2000000, now()), ('bank_payout', 200000, 200000, now()), ('refund', 200000, 2000000, now());
CREATE TRIGGER approval_rules_guarded BEFORE UPDATE ON approval_rules FOR EACH ROW
    WHEN (NEW.one_above > OLD.one_above OR NEW.two_above > OLD.two_above OR NEW.object_type <> OLD.object_type)
    EXECUTE FUNCTION guard_approval_rule();

-- The right to one decision about one object, issued to an officer by the API. Only a hash of the token is stored. It
-- is used once.
CREATE TABLE approval_tokens (
    id          uuid            PRIMARY KEY,
    token_hash  bytea           NOT NULL CHECK (octet_length(token_hash) = 32),
    officer_id  uuid            NOT NULL REFERENCES users (id),
    object_type text            NOT NULL CHECK (object_type IN ('transfer', 'refund', 'order')),
    object_id   uuid            NOT NULL,
    action      text            NOT NULL CHECK (action IN ('approve', 'reject')),
    asset       asset           NOT NULL,
    amount      positive_amount NOT NULL,
    digest      text            NOT NULL CHECK (char_length(digest) = 64),
    channel        text            NOT NULL CHECK (channel IN ('api', 'signal')),
    note        text            NOT NULL CHECK (char_length(note) <= 500),
    created_at  timestamptz     NOT NULL,
    expires_at  timestamptz     NOT NULL,
    used_at     timestamptz,
    CONSTRAINT approval_tokens_hash_key UNIQUE (token_hash),
    CONSTRAINT approval_tokens_life CHECK (expires_at > created_at AND expires_at <= created_at + interval '1 hour'),
    CONSTRAINT approval_tokens_use CHECK (used_at IS NULL OR used_at < expires_at)
);
CREATE INDEX approval_tokens_object_idx ON approval_tokens (object_type, object_id);
CALL never_removed('approval_tokens');
CALL same_columns('approval_tokens',
    'id, token_hash, officer_id, object_type, object_id, action, asset, amount, digest, channel, note, created_at, expires_at');
CALL set_once('approval_tokens', 'used_at');

-- The decisions that count: one per officer and object, each by the officer's token for exactly that object.
CREATE TABLE approvals (
    id           uuid        PRIMARY KEY,
    token_id     uuid        NOT NULL REFERENCES approval_tokens (id),
    object_type  text        NOT NULL CHECK (object_type IN ('transfer', 'refund', 'order')),
    object_id    uuid        NOT NULL,
    officer_id   uuid        NOT NULL REFERENCES users (id),
    requester_id uuid        REFERENCES users (id),
    action       text        NOT NULL CHECK (action IN ('approve', 'reject')),
    digest       text        NOT NULL,
    created_at   timestamptz NOT NULL,
    CONSTRAINT approvals_token_key UNIQUE (token_id),
    CONSTRAINT approvals_person_key UNIQUE (object_type, object_id, officer_id, digest),
    CONSTRAINT approvals_apart CHECK (officer_id <> requester_id),
    -- A refund that a flow opened has no requester.
    CONSTRAINT approvals_requester CHECK (requester_id IS NOT NULL OR object_type = 'refund')
);
CALL append_only('approvals');
CREATE TRIGGER approvals_proven BEFORE INSERT ON approvals FOR EACH ROW EXECUTE FUNCTION check_approval();
