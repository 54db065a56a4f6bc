-- +goose Up
-- What a person says for the record is a note everywhere, also in what waits for a second person.
ALTER TABLE control_changes DISABLE TRIGGER USER;
UPDATE control_changes SET change = change - 'reason' || jsonb_build_object('note', change -> 'reason')
    WHERE kind IN ('treasury_allocation', 'exception_decision') AND change ? 'reason';

-- A change of the approval rules names what each of them is about.
UPDATE control_changes SET was = jsonb_set(was, '{approvals}', jsonb_build_object('transfer', was -> 'approvals')),
        change = jsonb_set(change, '{approvals}', jsonb_build_object('transfer', change -> 'approvals'))
    WHERE kind = 'house_limits' AND change ? 'approvals';
ALTER TABLE control_changes ENABLE TRIGGER USER;

-- A payment by bank is always confirmed by one officer, and above one value by two: so its rule has one value alone.
UPDATE approval_rules SET two_above = one_above WHERE object_type = 'bank_payout';
ALTER TABLE approval_rules ADD CONSTRAINT approval_rules_bank CHECK (object_type <> 'bank_payout' OR two_above = one_above);

-- guard_approval_rule is as before, except that every rule is found by its name. That of payments by bank says when
-- a second officer is asked for and nothing else.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION guard_approval_rule() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.object_type <> OLD.object_type OR NOT EXISTS (SELECT FROM control_changes c,
                LATERAL (SELECT c.change -> 'approvals' -> NEW.object_type AS agreed) a
            WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'house_limits'
                AND coalesce(a.agreed ->> 'one_above', a.agreed ->> 'two_above')::numeric = NEW.one_above
                AND (a.agreed ->> 'two_above')::numeric = NEW.two_above) THEN
        RAISE EXCEPTION 'nobody confirmed higher approval values' USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- check_decision_persons is as before, except that what the person said is the note of the change.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION check_decision_persons() RETURNS trigger LANGUAGE plpgsql AS $$
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
        AND c.change ->> 'verdict' = NEW.verdict AND c.change ->> 'note' = NEW.reason
        AND (c.change ->> 'wallet_id') IS NOT DISTINCT FROM NEW.wallet_id::text AND (c.change ->> 'merchant_id') IS NOT DISTINCT FROM NEW.merchant_id::text;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'change % is not a confirmation of this decision about exception %', NEW.change_id, x.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
