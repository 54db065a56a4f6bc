-- A payment whose money may have left is neither given up, which releases its money, nor retried. Nor is it given up before the watch has
-- read whether its failed transactions moved nothing.
CREATE OR REPLACE FUNCTION refuse_end_of_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF payment_hold(NEW.id) IN ('unexpected_send', 'sent_before') AND (NEW.status = 'cancelled' OR payment_hold(NEW.id) = 'unexpected_send') THEN
        RAISE EXCEPTION 'payment % may have moved money; what moved must be settled first', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status = 'cancelled' AND giving_up_waits(NEW.id) <> '' THEN
        RAISE EXCEPTION 'payment % is not given up before it is known what it moved: %', NEW.id, giving_up_waits(NEW.id) USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
