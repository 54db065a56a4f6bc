-- Only the next number can be taken, and taking it moves the sequence: there can be no gap. The service itself can't
-- move a sequence.
CREATE OR REPLACE FUNCTION take_nonce() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE nonce_sequences SET next = next + 1 WHERE wallet_id = NEW.wallet_id AND next = NEW.nonce AND foreign_nonce IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nonce % of wallet % is not the next one', NEW.nonce, NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
