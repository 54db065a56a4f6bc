-- Two officers decide who gets a large refund by mobile money, where a source names another payer.
CREATE OR REPLACE FUNCTION check_payee_confirmed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF refund_needs_second(NEW.id, NULL) THEN
        RAISE EXCEPTION 'no second officer confirmed the payee of refund %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
