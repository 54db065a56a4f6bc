-- What was asked for stays beside the amount, which may change with what arrives.
CREATE OR REPLACE FUNCTION fill_asked_amount() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.asked_amount := NEW.crypto_amount;
    RETURN NEW;
END $$;
