-- A deposit is what its intent says, and its creator's merchant's.
CREATE OR REPLACE FUNCTION check_asked_deposit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    said jsonb := intent_terms(NEW.intent_id, (SELECT i.kind FROM intents i WHERE i.id = NEW.intent_id AND i.kind IN ('deposit.draft', 'deposit.open')), NEW.id, NEW.created_by);
BEGIN
    IF NOT coalesce(
            EXISTS (SELECT FROM users u WHERE u.id = NEW.created_by AND u.role IN ('vendor', 'subvendor') AND coalesce(u.vendor_id, u.id) = NEW.merchant_id)
            AND coalesce(said ->> 'method', '') = NEW.method
            AND split_part(said ->> 'fiat', ' ', 1)::numeric IS NOT DISTINCT FROM NEW.fiat_amount
            AND (said ->> 'asset', said ->> 'network') IS NOT DISTINCT FROM (NEW.asset::text, NEW.network::text)
            AND num_nonnulls(NEW.received_at, NEW.assigned_to, NEW.claimed_by, NEW.confirmed_by, NEW.confirmed_at, NEW.credited_by, NEW.rejected_by, NEW.submitted_at) = 0,
            false) THEN
        RAISE EXCEPTION 'deposit % is not what was asked for', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
