-- Money is booked as received only for an attempt to collect it that has succeeded.
CREATE OR REPLACE FUNCTION check_collection() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM payment_attempts a WHERE a.id = NEW.attempt_id AND a.direction = 'collection' AND a.status = 'succeeded' AND a.asset = NEW.asset FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'payment % is not of a successful collection', NEW.receipt USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
