-- A payout is born of an order whose crypto was taken, with what that order says.
CREATE OR REPLACE FUNCTION check_payout_born() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM orders o WHERE o.id = NEW.id AND o.order_type LIKE 'OFF\_RAMP%' AND o.status = 'processing'
            AND o.fiat_amount = NEW.amount AND o.payment_phone = NEW.phone AND o.payment_method = NEW.rail) THEN
        RAISE EXCEPTION 'the payout of order % is not what the order says', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
