-- A mobile money refund ends by an attempt that has paid it, or by an officer's receipt, which needs a second officer above a
-- value and is not one of another payment.
CREATE OR REPLACE FUNCTION check_resolved_refund() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.paid_by IS NOT NULL THEN
        IF NOT EXISTS (SELECT FROM payment_attempts a WHERE a.id = NEW.paid_by AND a.object_type = 'refund' AND a.object_id = NEW.id AND a.direction = 'payout'
                AND a.status = 'succeeded' AND a.moved = NEW.amount AND a.receipt = NEW.receipt) THEN
            RAISE EXCEPTION 'no attempt has paid refund %', NEW.id USING ERRCODE = 'KV002';
        END IF;
        RETURN NEW;
    END IF;
    IF receipt_fault(NEW.id, NEW.receipt) <> '' THEN
        RAISE EXCEPTION 'refund % names the receipt of another payment', NEW.id USING ERRCODE = 'unique_violation';
    END IF;
    PERFORM lock_decisions();
    IF receipt_needs_second(NEW.id, NEW.receipt) THEN
        RAISE EXCEPTION 'no second officer confirmed the receipt of refund %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
