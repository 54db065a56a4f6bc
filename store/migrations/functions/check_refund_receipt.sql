-- The receipt with which an officer ends a refund must not belong to another order's payment.
CREATE OR REPLACE FUNCTION check_refund_receipt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM payment_attempts a WHERE a.receipt = NEW.receipt AND a.order_id <> NEW.order_id) THEN
        RAISE EXCEPTION 'refund % names the receipt of another order', NEW.id USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NEW;
END $$;
