-- Stores the requested amount, because a deposit may change the amount.
CREATE OR REPLACE FUNCTION fill_asked_amount() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.asked_amount := NEW.crypto_amount;
    RETURN NEW;
END $$;
