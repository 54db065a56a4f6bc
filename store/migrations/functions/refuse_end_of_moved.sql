-- A payment whose money may have left is neither given up, which releases its money, nor retried.
CREATE OR REPLACE FUNCTION refuse_end_of_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF payment_hold(NEW.id) IN ('unexpected_send', 'sent_before') AND (NEW.status = 'cancelled' OR payment_hold(NEW.id) = 'unexpected_send') THEN
        RAISE EXCEPTION 'payment % may have moved money; what moved must be settled first', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
