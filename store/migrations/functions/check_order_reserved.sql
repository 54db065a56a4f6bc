-- An order's crypto is delivered only while all of it is reserved for the order, in the wallet that it leaves. What is already on the final
-- chain is paid.
CREATE OR REPLACE FUNCTION check_order_reserved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT reserved_for(NEW, 'order', NEW.object_id) AND NOT EXISTS (SELECT FROM chain_attempts WHERE payment_id = NEW.id AND adopted AND status = 'included') THEN
        RAISE EXCEPTION 'the crypto of chain payment % is not reserved for its order', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
