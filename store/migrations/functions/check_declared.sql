-- The class of an attempt that officers declared unpaid requires their attestation.
CREATE OR REPLACE FUNCTION check_declared() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM payout_attestations w WHERE w.attempt_id = NEW.id) THEN
        RAISE EXCEPTION 'no officers declared that payment attempt % was not made', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
