-- Two officers decide about large amounts. A rate may lower a coin's value by at most a quarter of its valuation: an
-- amount above one officer's limit even then is never decided by one alone. The service itself uses the rate. What two decided is about the
-- exception as both saw it: its version then is the last one before the decision.
CREATE OR REPLACE FUNCTION check_decision_officers() RETURNS trigger LANGUAGE plpgsql AS $$
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
            RAISE EXCEPTION 'no second officer confirmed the decision about exception %', x.id USING ERRCODE = 'KV006';
        END IF;
        RETURN NEW;
    END IF;
    PERFORM FROM control_changes c WHERE c.id = NEW.change_id AND c.kind = 'exception_decision' AND c.applied_in = pg_current_xact_id()
        AND c.proposed_by = NEW.decided_by AND c.change ->> 'id' = NEW.id::text AND c.change ->> 'exception_id' = NEW.exception_id::text
        AND (c.was ->> 'version')::bigint + 1 = x.version AND c.change ->> 'verdict' = NEW.verdict AND c.change ->> 'note' = NEW.reason
        AND (c.change ->> 'wallet_id') IS NOT DISTINCT FROM NEW.wallet_id::text AND (c.change ->> 'merchant_id') IS NOT DISTINCT FROM NEW.merchant_id::text;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'change % is not a confirmation of this decision about exception %', NEW.change_id, x.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
