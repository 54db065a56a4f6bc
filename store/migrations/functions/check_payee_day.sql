-- No payout begins that brings its payee above the provider's daily limit, whatever it pays.
CREATE OR REPLACE FUNCTION check_payee_day() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT payee_has_room(NEW.phone, NEW.amount, NEW.created_at) THEN
        RAISE EXCEPTION 'payment attempt % exceeds the daily limit of its payee', NEW.id USING ERRCODE = 'KV056';
    END IF;
    RETURN NEW;
END $$;
