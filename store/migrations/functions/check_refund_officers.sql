-- Two officers decide about large refunds by mobile money: that of an order, that of an exception, and the payee of each.
-- What was paid above or below the price of an order goes back by rule, without officers; check_exception_refund bounds it.
CREATE OR REPLACE FUNCTION check_refund_officers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_decisions();
    IF TG_OP = 'INSERT' AND refund_needs_second(coalesce(NEW.exception_id, NEW.order_id), NEW.amount) AND NOT (NEW.requested_by IS NULL
            AND EXISTS (SELECT FROM payment_exceptions x WHERE x.id = NEW.exception_id AND x.kind IN ('under', 'over'))) THEN
        RAISE EXCEPTION 'no second officer confirmed the refund of order %', NEW.order_id USING ERRCODE = 'KV006';
    END IF;
    IF NEW.payee_confirmed AND refund_needs_second(NEW.id, NEW.amount) THEN
        RAISE EXCEPTION 'no second officer confirmed the payee of refund %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
