-- +goose Up
-- What a person decides about much money that does not fit, a second one confirms. Both are of the change, and the
-- decision is written in the transaction of the confirmation.
ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind, ADD CONSTRAINT control_changes_kind CHECK (kind IN
    ('house_limits', 'user_limits', 'staff_access', 'momo_terms', 'treasury_allocation', 'float_move', 'exception_decision'));

-- check_control_change is as before, except that a treasury officer may propose what becomes of money that does not fit.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION check_control_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    decider text;
BEGIN
    NEW.applied_in := NULL;
    PERFORM FROM users WHERE id = NEW.proposed_by AND is_active AND (role = 'admin'
        OR (role = 'treasury' AND NEW.kind IN ('momo_terms', 'treasury_allocation', 'float_move', 'exception_decision'))) FOR SHARE;
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

ALTER TABLE exception_decisions ADD COLUMN change_id uuid REFERENCES control_changes (id);
CREATE UNIQUE INDEX exception_decisions_change_key ON exception_decisions (change_id) WHERE change_id IS NOT NULL;

-- A rate may lower what a coin counts as by a quarter of its valuation and no further. What is above the value for one
-- person even then is decided by nobody alone; the service itself counts by the rate.
-- +goose StatementBegin
CREATE FUNCTION check_decision_persons() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    x     payment_exceptions;
    value numeric;
    most  numeric;
BEGIN
    SELECT * INTO x FROM payment_exceptions WHERE id = NEW.exception_id;
    IF NEW.change_id IS NULL THEN
        SELECT CASE x.asset WHEN 'KES' THEN x.amount ELSE x.amount * 0.75 * (SELECT rate FROM valuations v WHERE v.asset = x.asset) END INTO value;
        SELECT one_above INTO most FROM approval_rules WHERE object_type = 'transfer';
        IF x.kind <> 'reconciliation' AND value > most THEN
            RAISE EXCEPTION 'nobody confirmed the decision about exception %', x.id USING ERRCODE = 'KV006';
        END IF;
        RETURN NEW;
    END IF;
    PERFORM FROM control_changes c WHERE c.id = NEW.change_id AND c.kind = 'exception_decision' AND c.applied_in = pg_current_xact_id()
        AND c.proposed_by = NEW.decided_by AND c.change ->> 'id' = NEW.id::text AND c.change ->> 'exception_id' = NEW.exception_id::text
        AND c.change ->> 'verdict' = NEW.verdict AND c.change ->> 'reason' = NEW.reason
        AND (c.change ->> 'wallet_id') IS NOT DISTINCT FROM NEW.wallet_id::text AND (c.change ->> 'merchant_id') IS NOT DISTINCT FROM NEW.merchant_id::text;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'change % is not a confirmation of this decision about exception %', NEW.change_id, x.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER exception_decisions_persons BEFORE INSERT ON exception_decisions FOR EACH ROW EXECUTE FUNCTION check_decision_persons();
