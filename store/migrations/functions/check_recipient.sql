-- An external recipient is screened before the payment is signed. A payment found on the final chain is already made.
CREATE OR REPLACE FUNCTION check_recipient() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM chain_attempts WHERE payment_id = NEW.id AND adopted AND status = 'included') THEN
        RETURN NEW; -- it is already paid
    END IF;
    IF NOT recipient_cleared(NEW) THEN
        RAISE EXCEPTION 'the recipient of payment % is not cleared by a screening', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
