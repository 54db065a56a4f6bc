-- A collection begins only for a purchase that waits for its payment, of its price, from its payer, under its reference.
CREATE OR REPLACE FUNCTION check_order_collection() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM orders o WHERE o.id = NEW.object_id AND o.order_type LIKE 'ON\_RAMP%' AND o.status = 'pending'
        AND o.fiat_amount = NEW.amount AND NEW.asset = 'KES' AND o.payment_phone = NEW.phone AND o.payment_reference = NEW.reference FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'payment attempt % does not collect what its order wants now', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
