-- +goose Up
-- What a person decides about money that does not fit, once for each exception, and never about more than came.

-- What the house or somebody else got of a collection can't be refunded any more.
ALTER TABLE collections ADD COLUMN kept zero_or_more NOT NULL DEFAULT 0;
UPDATE collections c SET kept = x.amount FROM payment_exceptions x
    WHERE x.receipt = c.receipt AND x.kind NOT IN ('paid_twice', 'reconciliation') AND x.status IN ('accepted', 'credited', 'written_off');
ALTER TABLE collections DROP CONSTRAINT collections_refunded, ADD CONSTRAINT collections_refunded CHECK (refunded + kept <= amount);
CREATE TRIGGER collections_kept_grows BEFORE UPDATE ON collections FOR EACH ROW WHEN (NEW.kept < OLD.kept) EXECUTE FUNCTION refuse_change();

-- The update takes the collection's lock, so that a refund and a decision that don't fit together can't pass each other.
-- +goose StatementBegin
CREATE FUNCTION count_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE collections SET kept = kept + NEW.amount WHERE receipt = NEW.receipt;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payment_exceptions_kept AFTER UPDATE ON payment_exceptions FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status IN ('accepted', 'credited', 'written_off') AND NEW.kind NOT IN ('paid_twice', 'reconciliation'))
    EXECUTE FUNCTION count_kept();

-- A refund that an exception asks for is of that exception's money: the same payment, at most its amount, while it is
-- on its way back. There is one for each exception.
-- +goose StatementBegin
CREATE FUNCTION check_exception_refund() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM payment_exceptions x WHERE x.id = NEW.exception_id AND x.status = 'refunding' AND x.receipt = NEW.collection
        AND x.attempt_id = NEW.attempt_id AND x.asset = NEW.asset AND x.amount >= NEW.amount
        AND x.kind NOT IN ('paid_twice', 'reconciliation') FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'refund % is not of the money of exception %', NEW.id, NEW.exception_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER refunds_of_exception BEFORE INSERT ON refunds FOR EACH ROW WHEN (NEW.exception_id IS NOT NULL)
    EXECUTE FUNCTION check_exception_refund();

-- One movement opens one exception.
CREATE UNIQUE INDEX chain_deposits_exception_key ON chain_deposits (exception_id) WHERE exception_id IS NOT NULL;

CREATE TABLE exception_decisions (
    id           uuid        PRIMARY KEY, -- of the request
    exception_id uuid        NOT NULL REFERENCES payment_exceptions (id),
    verdict      text        NOT NULL CHECK (verdict IN ('accepted', 'credited', 'written_off')),
    wallet_id    uuid        REFERENCES wallets (id),
    merchant_id  uuid        REFERENCES users (id),
    reason       text        NOT NULL CHECK (char_length(reason) BETWEEN 1 AND 500),
    decided_by   uuid        NOT NULL REFERENCES users (id),
    decided_at   timestamptz NOT NULL,
    CONSTRAINT exception_decisions_exception_key UNIQUE (exception_id),
    CONSTRAINT exception_decisions_account CHECK (num_nonnulls(wallet_id, merchant_id) = CASE verdict WHEN 'credited' THEN 1 ELSE 0 END)
);
CREATE TRIGGER exception_decisions_immutable BEFORE UPDATE OR DELETE ON exception_decisions FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER exception_decisions_kept BEFORE TRUNCATE ON exception_decisions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- check_exception_decision holds a decision to who may take it, to what became of the exception, and to an account
-- that the money may be owed to: shillings to a merchant, money of a chain in the wallet where it lies.
-- +goose StatementBegin
CREATE FUNCTION check_exception_decision() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    x payment_exceptions;
BEGIN
    PERFORM FROM users WHERE id = NEW.decided_by AND is_active AND role IN ('admin', 'treasury') FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'exception % is decided by nobody who may', NEW.exception_id USING ERRCODE = 'KV006';
    END IF;
    SELECT * INTO x FROM payment_exceptions WHERE id = NEW.exception_id;
    IF x.status <> NEW.verdict THEN
        RAISE EXCEPTION 'exception % is %, not %', x.id, x.status, NEW.verdict USING ERRCODE = 'KV001';
    END IF;
    IF NEW.verdict = 'credited' AND x.kind IN ('paid_twice', 'reconciliation') THEN
        RAISE EXCEPTION 'exception % brought no money', x.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.merchant_id IS NOT NULL AND (x.asset <> 'KES' OR NOT EXISTS (SELECT FROM users WHERE id = NEW.merchant_id AND role = 'vendor')) THEN
        RAISE EXCEPTION 'exception % is not credited to a merchant', x.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.wallet_id IS NOT NULL AND NOT EXISTS (SELECT FROM chain_deposits d JOIN wallets w ON w.id = d.wallet_id
            WHERE d.exception_id = x.id AND d.status = 'final' AND d.wallet_id = NEW.wallet_id AND d.asset = x.asset
                AND d.amount = x.amount AND w.owner_id IS NOT NULL) THEN
        RAISE EXCEPTION 'exception % does not lie in wallet %', x.id, NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER exception_decisions_checked BEFORE INSERT ON exception_decisions FOR EACH ROW EXECUTE FUNCTION check_exception_decision();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT UPDATE (kept) ON collections TO kivuko_app;
        GRANT SELECT, INSERT ON exception_decisions TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
