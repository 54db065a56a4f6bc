-- A mobile money refund that ends without a proven payout ends by an officer's receipt, which needs a second officer
-- above a value and is not one of another payment.
CREATE OR REPLACE FUNCTION check_resolved_refund() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF receipt_fault(NEW.id, NEW.receipt) <> '' THEN
        RAISE EXCEPTION 'refund % names the receipt of another payment', NEW.id USING ERRCODE = 'unique_violation';
    END IF;
    IF receipt_needs_second(NEW.id, NEW.receipt) THEN
        RAISE EXCEPTION 'no second officer confirmed the receipt of refund %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
