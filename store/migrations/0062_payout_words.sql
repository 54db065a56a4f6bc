-- +goose Up
-- What two persons say of a payout of which the operator says too little: that it was made, with its receipt, or that it
-- was not made.

-- How old a payout of unknown outcome is at least before persons may declare that it was not made. No one of the service
-- changes it.
ALTER TABLE refund_policy ADD COLUMN unknown_seconds int NOT NULL DEFAULT 7200 CHECK (unknown_seconds BETWEEN 0 AND 604800);

ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind, ADD CONSTRAINT control_changes_kind CHECK (kind IN
    ('house_limits', 'user_limits', 'staff_access', 'momo_terms', 'treasury_allocation', 'float_move', 'exception_decision', 'payout_word'));

-- check_control_change is as before, except that a treasury officer may say what became of a payout.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION check_control_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    decider text;
BEGIN
    NEW.applied_in := NULL;
    PERFORM FROM users WHERE id = NEW.proposed_by AND is_active AND (role = 'admin'
        OR (role = 'treasury' AND NEW.kind IN ('momo_terms', 'treasury_allocation', 'float_move', 'exception_decision', 'payout_word'))) FOR SHARE;
    IF NOT FOUND AND NEW.status <> 'rejected' THEN
        RAISE EXCEPTION 'change % is not proposed by anybody active who may', NEW.id USING ERRCODE = 'KV006';
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

CREATE TABLE payout_words (
    id         uuid        PRIMARY KEY REFERENCES control_changes (id), -- by which the two agreed
    order_id   uuid        NOT NULL REFERENCES order_payouts (id),
    attempt_id uuid        REFERENCES payment_attempts (id), -- that was not made; of one that was made the receipt tells
    receipt    text        NOT NULL DEFAULT '' CHECK (receipt = '' OR receipt ~ '^[A-Z0-9]{8,20}$'),
    note       text        NOT NULL CHECK (char_length(note) BETWEEN 1 AND 500), -- how it was found out
    said_by    uuid        NOT NULL REFERENCES users (id),
    agreed_by  uuid        NOT NULL REFERENCES users (id),
    said_at    timestamptz NOT NULL,
    CONSTRAINT payout_words_either CHECK ((receipt = '') = (attempt_id IS NOT NULL)),
    CONSTRAINT payout_words_apart CHECK (said_by <> agreed_by)
);
CREATE UNIQUE INDEX payout_words_attempt_key ON payout_words (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE INDEX payout_words_order_idx ON payout_words (order_id);
CREATE TRIGGER payout_words_immutable BEFORE UPDATE OR DELETE ON payout_words FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER payout_words_kept BEFORE TRUNCATE ON payout_words FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- check_payout_word holds a word to the change that two persons agreed to in this transaction, and to a payout of which
-- nothing else is known: nobody claims it, its outcome is open, and has been for long enough.
-- +goose StatementBegin
CREATE FUNCTION check_payout_word() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM control_changes c WHERE c.id = NEW.id AND c.kind = 'payout_word' AND c.applied_in = pg_current_xact_id()
        AND c.proposed_by = NEW.said_by AND c.decided_by = NEW.agreed_by AND c.change ->> 'order_id' = NEW.order_id::text
        AND (c.change ->> 'attempt_id') IS NOT DISTINCT FROM NEW.attempt_id::text AND c.change ->> 'receipt' = NEW.receipt AND c.change ->> 'note' = NEW.note;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nobody confirmed what is said of the payout of order %', NEW.order_id USING ERRCODE = 'KV006';
    END IF;
    IF NEW.attempt_id IS NOT NULL AND NOT EXISTS (SELECT FROM payment_attempts a JOIN order_payouts p ON p.id = a.order_id, refund_policy y
            WHERE a.id = NEW.attempt_id AND a.order_id = NEW.order_id AND a.direction = 'payout' AND a.refund_id IS NULL
                AND a.status IN ('unknown', 'accepted') AND p.status = 'processing' AND p.rail = 'momo' AND NOT p.claimed
                AND a.created_at + make_interval(secs => y.unknown_seconds) <= clock_timestamp()) THEN
        RAISE EXCEPTION 'payment attempt % can not be declared not made', NEW.attempt_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payout_words_checked BEFORE INSERT ON payout_words FOR EACH ROW EXECUTE FUNCTION check_payout_word();

-- What persons declare is no proof: the payout is in doubt for ever, so that its refund needs another person still.
-- +goose StatementBegin
CREATE FUNCTION doubt_declared_payout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE order_payouts SET doubted = true WHERE id = NEW.order_id AND NOT doubted;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payout_words_doubt AFTER INSERT ON payout_words FOR EACH ROW WHEN (NEW.attempt_id IS NOT NULL) EXECUTE FUNCTION doubt_declared_payout();

-- The code by which an attempt is failed on the strength of persons' word stands for such a word.
-- +goose StatementBegin
CREATE FUNCTION check_declared() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM payout_words w WHERE w.attempt_id = NEW.id) THEN
        RAISE EXCEPTION 'nobody declared that payment attempt % was not made', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payment_attempts_declared BEFORE UPDATE ON payment_attempts FOR EACH ROW
    WHEN (NEW.result_code = 'declared' AND OLD.result_code <> 'declared') EXECUTE FUNCTION check_declared();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT ON payout_words TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
