-- A recipient outside of our custody is screened before the payment is signed. A payment that was found on the final
-- chain is made already.
CREATE OR REPLACE FUNCTION check_recipient() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM chain_attempts WHERE payment_id = NEW.id AND adopted AND status = 'included') THEN
        RETURN NEW; -- it is paid already
    END IF;
    IF NOT recipient_cleared(NEW) THEN
        RAISE EXCEPTION 'the recipient of payment % is not cleared by a screening', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
