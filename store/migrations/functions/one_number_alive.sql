-- Two live transactions of one payment could both pay, unless they have the same number.
CREATE OR REPLACE FUNCTION one_number_alive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_attempts WHERE payment_id = NEW.payment_id AND id <> NEW.id AND status IN ('signed', 'broadcast', 'included', 'replaced')
        AND (nonce_wallet IS NULL OR (nonce_wallet, nonce) IS DISTINCT FROM (NEW.nonce_wallet, NEW.nonce));
    IF FOUND THEN
        RAISE EXCEPTION 'payment % has a live transaction with another number', NEW.payment_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
