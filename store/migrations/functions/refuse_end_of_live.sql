-- Giving up a payment frees its hold, so it must not have a transaction that may still move money.
CREATE OR REPLACE FUNCTION refuse_end_of_live() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_attempts WHERE payment_id = NEW.id AND status IN ('signed', 'broadcast', 'included', 'replaced', 'succeeded');
    IF FOUND THEN
        RAISE EXCEPTION 'payment % has a transaction that may move money', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
