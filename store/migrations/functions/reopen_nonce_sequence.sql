-- A sequence that a foreign transaction closed continues from the final chain's count. No transaction of ours may be
-- undecided then: its number could be assigned twice.
CREATE OR REPLACE FUNCTION reopen_nonce_sequence() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM nonce_sequences WHERE wallet_id = NEW.wallet_id AND next = NEW.next_before AND foreign_nonce IS NOT DISTINCT FROM NEW.foreign_nonce
        FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the nonce sequence of wallet % does not match the reopening', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM chain_attempts WHERE nonce_wallet = NEW.wallet_id AND status IN ('signed', 'broadcast', 'included', 'replaced');
    IF FOUND THEN
        RAISE EXCEPTION 'a transaction of wallet % is undecided', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM cold_drafts WHERE nonce_wallet = NEW.wallet_id AND status = 'open';
    IF FOUND THEN
        RAISE EXCEPTION 'a transaction of wallet % is being signed', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    UPDATE nonce_sequences SET next = NEW.next_after, foreign_nonce = NULL WHERE wallet_id = NEW.wallet_id;
    RETURN NEW;
END $$;
