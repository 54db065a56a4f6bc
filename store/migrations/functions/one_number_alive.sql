-- Two live transactions of one payment could both pay, unless they have the same number.
CREATE OR REPLACE FUNCTION one_number_alive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_attempts WHERE payment_id = NEW.payment_id AND id <> NEW.id AND status IN ('signed', 'broadcast', 'included', 'replaced')
        AND (lane IS NULL OR (lane, nonce) IS DISTINCT FROM (NEW.lane, NEW.nonce));
    IF FOUND THEN
        RAISE EXCEPTION 'payment % has a live transaction with another number', NEW.payment_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
