-- +goose Up
-- Two persons for what stands between one person and the money: limits and approval values that are raised, and
-- accounts of those who may approve. One proposes, another confirms, and the change takes effect in the
-- transaction of the confirmation. Whatever only tightens the controls takes effect at once.

CREATE TABLE control_changes (
    id          uuid        PRIMARY KEY,
    kind        text        NOT NULL CHECK (kind IN ('house_limits', 'user_limits', 'staff_access')),
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
    -- The transaction of the confirmation. The guards below let a control be loosened in no other.
    applied_in  xid8,
    CONSTRAINT control_changes_subject CHECK ((kind = 'house_limits') = (subject_id IS NULL)),
    CONSTRAINT control_changes_life CHECK (expires_at > proposed_at AND expires_at <= proposed_at + interval '7 days'),
    CONSTRAINT control_changes_decided CHECK ((status = 'pending') = (decided_by IS NULL) AND (decided_by IS NULL) = (decided_at IS NULL)),
    CONSTRAINT control_changes_apart CHECK (status <> 'confirmed' OR (decided_by <> proposed_by AND decided_by IS DISTINCT FROM subject_id)),
    CONSTRAINT control_changes_in_time CHECK (status <> 'confirmed' OR decided_at < expires_at)
);
CREATE INDEX control_changes_pending_idx ON control_changes (proposed_at, id) WHERE status = 'pending';
CREATE INDEX control_changes_subject_idx ON control_changes (subject_id) WHERE subject_id IS NOT NULL AND status = 'pending';
CREATE INDEX control_changes_proposed_idx ON control_changes (proposed_at DESC, id DESC);
CREATE INDEX control_changes_applied_idx ON control_changes (applied_in) WHERE applied_in IS NOT NULL;

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('control_change', '', 'pending'),
    ('control_change', 'pending', 'confirmed'),
    ('control_change', 'pending', 'rejected');

-- check_control_change holds the persons of a change to their roles, whoever writes it. Both are locked, so that
-- nobody who is being deactivated at this moment counts. Who is of a role whose limits change gains by it.
-- +goose StatementBegin
CREATE FUNCTION check_control_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    decider text;
BEGIN
    NEW.applied_in := NULL;
    PERFORM FROM users WHERE id = NEW.proposed_by AND is_active AND role = 'admin' FOR SHARE;
    IF NOT FOUND AND NEW.status <> 'rejected' THEN
        RAISE EXCEPTION 'change % is not proposed by an active admin', NEW.id USING ERRCODE = 'KV006';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        SELECT role INTO decider FROM users WHERE id = NEW.decided_by AND is_active AND role IN ('admin', 'treasury') FOR SHARE;
        IF decider IS NULL THEN
            RAISE EXCEPTION 'change % is decided by nobody who may', NEW.id USING ERRCODE = 'KV006';
        END IF;
        IF NEW.status = 'confirmed' THEN
            IF coalesce(NEW.change -> 'roles' ? decider, false) THEN
                RAISE EXCEPTION 'change % is confirmed by somebody who gains by it', NEW.id USING ERRCODE = 'KV006';
            END IF;
            NEW.applied_in := pg_current_xact_id();
        END IF;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER control_changes_born BEFORE INSERT ON control_changes FOR EACH ROW EXECUTE FUNCTION check_transition('control_change');
CREATE TRIGGER control_changes_moves BEFORE UPDATE ON control_changes FOR EACH ROW WHEN (OLD.status <> NEW.status)
    EXECUTE FUNCTION check_transition('control_change');
CREATE TRIGGER control_changes_persons BEFORE INSERT OR UPDATE ON control_changes FOR EACH ROW EXECUTE FUNCTION check_control_change();
CREATE TRIGGER control_changes_same BEFORE UPDATE ON control_changes FOR EACH ROW
    WHEN (OLD.status <> 'pending' OR (OLD.id, OLD.kind, OLD.subject_id, OLD.was, OLD.change, OLD.proposed_by, OLD.proposed_at, OLD.expires_at)
          IS DISTINCT FROM
          (NEW.id, NEW.kind, NEW.subject_id, NEW.was, NEW.change, NEW.proposed_by, NEW.proposed_at, NEW.expires_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER control_changes_kept BEFORE DELETE ON control_changes FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER control_changes_whole BEFORE TRUNCATE ON control_changes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- limit_rises tells whether a limit is raised or lifted. NULL is no limit.
CREATE FUNCTION limit_rises(was numeric, now numeric) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT was IS NOT NULL AND (now IS NULL OR now > was)
$$;

-- limits_agreed tells whether a part of a confirmed change says exactly these limits.
CREATE FUNCTION limits_agreed(part jsonb, per_transaction numeric, per_day numeric, per_month numeric) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT part IS NOT NULL AND (part ->> 'per_transaction')::numeric IS NOT DISTINCT FROM per_transaction
        AND (part ->> 'per_day')::numeric IS NOT DISTINCT FROM per_day AND (part ->> 'per_month')::numeric IS NOT DISTINCT FROM per_month
$$;

-- +goose StatementBegin
CREATE FUNCTION guard_role_limits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'house_limits'
            AND limits_agreed(c.change -> 'roles' -> NEW.role, NEW.per_transaction, NEW.per_day, NEW.per_month)) THEN
        RAISE EXCEPTION 'nobody confirmed higher limits for %', NEW.role USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER role_limits_guarded BEFORE UPDATE ON role_limits FOR EACH ROW
    WHEN (limit_rises(OLD.per_transaction, NEW.per_transaction) OR limit_rises(OLD.per_day, NEW.per_day)
        OR limit_rises(OLD.per_month, NEW.per_month) OR OLD.role <> NEW.role)
    EXECUTE FUNCTION guard_role_limits();

-- A stablecoin that counts as less lets more of it pass under every limit.
-- +goose StatementBegin
CREATE FUNCTION guard_valuation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'house_limits'
            AND (c.change -> 'valuations' ->> NEW.asset)::numeric = NEW.rate) THEN
        RAISE EXCEPTION 'nobody confirmed a lower valuation of %', NEW.asset USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER valuations_guarded BEFORE UPDATE ON valuations FOR EACH ROW WHEN (NEW.rate < OLD.rate OR OLD.asset <> NEW.asset)
    EXECUTE FUNCTION guard_valuation();

-- +goose StatementBegin
CREATE FUNCTION guard_approval_rule() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'house_limits'
            AND (c.change -> 'approvals' ->> 'one_above')::numeric = NEW.one_above
            AND (c.change -> 'approvals' ->> 'two_above')::numeric = NEW.two_above) THEN
        RAISE EXCEPTION 'nobody confirmed higher approval values' USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER approval_rules_guarded BEFORE UPDATE ON approval_rules FOR EACH ROW
    WHEN (NEW.one_above > OLD.one_above OR NEW.two_above > OLD.two_above OR NEW.object_type <> OLD.object_type)
    EXECUTE FUNCTION guard_approval_rule();

-- A user's own limit may be anything up to its role's. Above that, two persons agree to exactly these.
-- +goose StatementBegin
CREATE FUNCTION guard_user_limits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    general role_limits;
    was     user_limits;
BEGIN
    SELECT l.* INTO general FROM role_limits l JOIN users u ON u.role = l.role WHERE u.id = NEW.user_id;
    SELECT l.* INTO was FROM user_limits l WHERE l.user_id = NEW.user_id; -- an INSERT may turn out to be an UPDATE
    IF ((NEW.per_transaction > general.per_transaction AND NEW.per_transaction > coalesce(was.per_transaction, general.per_transaction))
            OR (NEW.per_day > general.per_day AND NEW.per_day > coalesce(was.per_day, general.per_day))
            OR (NEW.per_month > general.per_month AND NEW.per_month > coalesce(was.per_month, general.per_month)))
        AND NOT EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'user_limits'
            AND c.subject_id = NEW.user_id AND limits_agreed(c.change -> 'limits', NEW.per_transaction, NEW.per_day, NEW.per_month)) THEN
        RAISE EXCEPTION 'nobody confirmed limits of user % above those of its role', NEW.user_id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER user_limits_guarded BEFORE INSERT OR UPDATE ON user_limits FOR EACH ROW EXECUTE FUNCTION guard_user_limits();

-- Whoever may approve was let in by two. The exception is the second account of that kind that ever was: the
-- first is alone and must be able to get somebody who confirms. Accounts are never deleted, so that deactivating
-- colleagues does not bring that back.
-- +goose StatementBegin
CREATE FUNCTION guard_staff() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(x'6b697374'::int);
    IF TG_OP = 'INSERT' AND (SELECT count(*) FROM users WHERE role IN ('admin', 'treasury')) < 2 THEN
        RETURN NEW;
    END IF;
    IF NOT EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'staff_access'
            AND c.subject_id = NEW.id AND c.change ->> 'role' = NEW.role) THEN
        RAISE EXCEPTION 'nobody confirmed user % as %', NEW.id, NEW.role USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER users_staff_born BEFORE INSERT ON users FOR EACH ROW WHEN (NEW.is_active AND NEW.role IN ('admin', 'treasury'))
    EXECUTE FUNCTION guard_staff();
CREATE TRIGGER users_staff_active BEFORE UPDATE ON users FOR EACH ROW
    WHEN (NEW.is_active AND NEW.role IN ('admin', 'treasury') AND (NOT OLD.is_active OR NEW.role <> OLD.role))
    EXECUTE FUNCTION guard_staff();

-- A transfer goes into the queue with the approvals of persons who may approve now, not of those who could once.
-- They are locked, so that none of them is deactivated at the same moment.
-- +goose StatementBegin
CREATE FUNCTION check_transfer_officers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.approvals_required > (SELECT count(*) FROM (SELECT u.id FROM approvals a JOIN users u ON u.id = a.officer_id
            WHERE a.object_type = 'transfer' AND a.object_id = NEW.id AND a.action = 'approve' AND a.digest = NEW.digest
                AND u.is_active AND u.role IN ('admin', 'treasury') FOR SHARE OF u) x) THEN
        RAISE EXCEPTION 'transfer % lacks approvals of active officers', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER transfers_officers BEFORE UPDATE ON transfers FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status = 'queued' AND NEW.approvals_required > 0) EXECUTE FUNCTION check_transfer_officers();

-- What the people of a merchant send counts at the merchant as a whole.
ALTER TABLE limit_uses ADD COLUMN merchant_id uuid REFERENCES users (id);
UPDATE limit_uses l SET merchant_id = CASE u.role WHEN 'vendor' THEN u.id ELSE u.vendor_id END FROM users u WHERE u.id = l.user_id AND u.role IN ('vendor', 'subvendor');
DROP INDEX limit_uses_user_idx;
CREATE INDEX limit_uses_user_idx ON limit_uses (user_id, used_at) INCLUDE (value) WHERE released_at IS NULL;
CREATE INDEX limit_uses_merchant_idx ON limit_uses (merchant_id, used_at) INCLUDE (value) WHERE released_at IS NULL AND merchant_id IS NOT NULL;
-- +goose StatementBegin
CREATE FUNCTION fill_limit_merchant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.merchant_id := (SELECT CASE role WHEN 'vendor' THEN id WHEN 'subvendor' THEN vendor_id END FROM users WHERE id = NEW.user_id);
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER limit_uses_merchant BEFORE INSERT ON limit_uses FOR EACH ROW EXECUTE FUNCTION fill_limit_merchant();
CREATE TRIGGER limit_uses_merchant_same BEFORE UPDATE ON limit_uses FOR EACH ROW WHEN (OLD.merchant_id IS DISTINCT FROM NEW.merchant_id)
    EXECUTE FUNCTION refuse_change();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT, UPDATE ON control_changes TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
