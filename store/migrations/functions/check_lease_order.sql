-- A lease belongs to a sale that was just opened.
CREATE OR REPLACE FUNCTION check_lease_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM orders WHERE id = NEW.order_id AND order_type LIKE 'OFF\_RAMP%' AND status = 'pending';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % borrows no escrow address', NEW.order_id USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM deposit_waits WHERE wallet_id = NEW.wallet_id AND ended_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no flow waits for money at escrow address %', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
