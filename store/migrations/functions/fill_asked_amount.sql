-- Stores the requested amount, because a deposit may change the amount. No order begins in its second wait (check_order_change).
CREATE OR REPLACE FUNCTION fill_asked_amount() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.asked_amount := NEW.crypto_amount;
    NEW.waits_until := NULL;
    RETURN NEW;
END $$;
