-- +goose Up
-- Payments to our number, once by receipt whichever channels told of them: the result of a prompt, the operator's
-- notice, its statement. A payment pays an order or lies in an exception, and never both.
CREATE TABLE c2b_payments (
    id           uuid            PRIMARY KEY,
    receipt      text            NOT NULL CHECK (char_length(receipt) BETWEEN 1 AND 40),
    status       text            NOT NULL CHECK (status IN ('unmatched', 'matched')),
    asset        asset           NOT NULL CHECK (asset = 'KES'),
    amount       positive_amount NOT NULL,
    reference    text            NOT NULL CHECK (char_length(reference) <= 60),
    party_hash   text            NOT NULL CHECK (char_length(party_hash) <= 64),
    paid_at      timestamptz     NOT NULL,
    order_id     uuid            REFERENCES orders (id),
    attempt_id   uuid            REFERENCES payment_attempts (id),
    exception_id uuid            REFERENCES payment_exceptions (id),
    told_at      timestamptz, -- by the operator's notice
    listed_at    timestamptz, -- in the operator's statement
    booked_at    timestamptz, -- for the order that it paid
    disputed     boolean         NOT NULL DEFAULT false, -- two channels named different amounts or references
    created_at   timestamptz     NOT NULL,
    updated_at   timestamptz     NOT NULL,
    CONSTRAINT c2b_payments_receipt_key UNIQUE (receipt),
    CONSTRAINT c2b_payments_exception_key UNIQUE (exception_id),
    CONSTRAINT c2b_payments_match CHECK (num_nonnulls(order_id, attempt_id, booked_at) = CASE status WHEN 'matched' THEN 3 ELSE 0 END),
    -- Only what the operator's own list holds is booked as money of nobody: a notice alone is not signed.
    CONSTRAINT c2b_payments_aside CHECK (exception_id IS NULL OR (status = 'unmatched' AND listed_at IS NOT NULL))
);
CREATE INDEX c2b_payments_paid_idx ON c2b_payments (paid_at DESC, id DESC);
CREATE INDEX c2b_payments_order_idx ON c2b_payments (order_id) WHERE order_id IS NOT NULL;
CREATE INDEX c2b_payments_party_idx ON c2b_payments (party_hash, paid_at) WHERE party_hash <> '';
CREATE INDEX c2b_payments_waiting_idx ON c2b_payments (paid_at) WHERE status = 'unmatched' AND exception_id IS NULL;
CREATE INDEX c2b_payments_unlisted_idx ON c2b_payments (paid_at) WHERE listed_at IS NULL;
CREATE INDEX payment_attempts_reference_idx ON payment_attempts (reference, created_at) WHERE direction = 'collection';
-- What was paid stays as it was told first, a place that money was given stays its place, and no channel forgets.
CREATE TRIGGER c2b_payments_same BEFORE UPDATE ON c2b_payments FOR EACH ROW
    WHEN (OLD.id <> NEW.id OR OLD.receipt <> NEW.receipt OR OLD.amount <> NEW.amount OR OLD.paid_at <> NEW.paid_at
        OR OLD.created_at <> NEW.created_at OR (OLD.reference <> '' AND OLD.reference <> NEW.reference)
        OR (OLD.party_hash <> '' AND OLD.party_hash <> NEW.party_hash) OR (OLD.disputed AND NOT NEW.disputed)
        OR (OLD.attempt_id IS NOT NULL AND (NEW.attempt_id, NEW.order_id, NEW.booked_at) IS DISTINCT FROM (OLD.attempt_id, OLD.order_id, OLD.booked_at))
        OR (OLD.exception_id IS NOT NULL AND NEW.exception_id IS DISTINCT FROM OLD.exception_id)
        OR (OLD.told_at IS NOT NULL AND NEW.told_at IS DISTINCT FROM OLD.told_at)
        OR (OLD.listed_at IS NOT NULL AND NEW.listed_at IS DISTINCT FROM OLD.listed_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER c2b_payments_kept BEFORE DELETE ON c2b_payments FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER c2b_payments_whole BEFORE TRUNCATE ON c2b_payments FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- What is known already.
INSERT INTO c2b_payments (id, receipt, status, asset, amount, reference, party_hash, paid_at, order_id, attempt_id, told_at, listed_at, booked_at, created_at, updated_at)
SELECT gen_random_uuid(), coalesce(r.receipt, c.receipt), CASE WHEN c.receipt IS NULL THEN 'unmatched' ELSE 'matched' END,
    coalesce(r.asset, c.asset), coalesce(r.amount, c.amount), coalesce(upper(btrim(r.reference)), a.reference),
    coalesce(r.party_hash, ''), coalesce(r.paid_at, c.created_at), c.order_id, c.attempt_id,
    CASE r.channel WHEN 'confirmation' THEN r.received_at END, CASE r.channel WHEN 'statement' THEN r.received_at END, c.created_at,
    coalesce(r.received_at, c.created_at), coalesce(r.received_at, c.created_at)
FROM momo_receipts r FULL JOIN collections c ON c.receipt = r.receipt LEFT JOIN payment_attempts a ON a.id = c.attempt_id;

-- Lines of the operator's statement that can't be taken for a payment. They are kept for a person; the lines around
-- them are taken.
CREATE TABLE c2b_quarantine (
    digest     text        PRIMARY KEY CHECK (digest ~ '^[0-9a-f]{64}$'), -- of the line, so that it is kept once
    receipt    text        NOT NULL CHECK (char_length(receipt) <= 60),
    kind       text        NOT NULL CHECK (char_length(kind) <= 60), -- the operator's word for the transaction
    amount     text        NOT NULL CHECK (char_length(amount) <= 40),
    reason     text        NOT NULL CHECK (reason IN ('unreadable', 'refused')),
    paid_at    timestamptz,
    created_at timestamptz NOT NULL
);
CREATE INDEX c2b_quarantine_created_idx ON c2b_quarantine (created_at);
CREATE TRIGGER c2b_quarantine_immutable BEFORE UPDATE OR DELETE ON c2b_quarantine FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER c2b_quarantine_kept BEFORE TRUNCATE ON c2b_quarantine FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT ON c2b_payments, c2b_quarantine TO kivuko_app;
        GRANT UPDATE (status, reference, party_hash, order_id, attempt_id, exception_id, told_at, listed_at, booked_at, disputed, updated_at)
            ON c2b_payments TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
