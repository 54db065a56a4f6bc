-- A payout attempt that an officer settles by a receipt needs a second officer above a value, and a receipt of its own.
CREATE OR REPLACE FUNCTION check_attested() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF receipt_fault(NEW.object_id, NEW.receipt) <> '' THEN
        RAISE EXCEPTION 'payment attempt % names the receipt of another payment', NEW.id USING ERRCODE = 'unique_violation';
    END IF;
    PERFORM lock_decisions();
    IF receipt_needs_second(NEW.object_id, NEW.receipt) THEN
        RAISE EXCEPTION 'no second officer confirmed the receipt of payment attempt %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
