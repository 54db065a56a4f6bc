-- A payout is created for an order with claimed crypto, with the order's terms.
CREATE OR REPLACE FUNCTION check_payout_created() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM orders o WHERE o.id = NEW.id AND o.order_type LIKE 'OFF\_RAMP%' AND o.status = 'processing'
            AND o.fiat_amount = NEW.amount AND o.payment_phone = NEW.phone AND o.payment_method = NEW.rail) THEN
        RAISE EXCEPTION 'the payout of order % does not match the order', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
