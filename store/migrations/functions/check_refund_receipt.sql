-- The receipt with which an officer ends a refund must not belong to another order's payment.
CREATE OR REPLACE FUNCTION check_refund_receipt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM payment_attempts a LEFT JOIN refunds f ON f.id = a.refund_id
            WHERE a.receipt = NEW.receipt AND coalesce(f.order_id, a.order_id) IS DISTINCT FROM NEW.order_id) THEN
        RAISE EXCEPTION 'refund % names the receipt of another order', NEW.id USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NEW;
END $$;
