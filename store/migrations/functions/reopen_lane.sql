-- A sequence that another's transaction closed goes on from what the final chain counts. No transaction of ours may be
-- undecided then: its number could be given out twice.
CREATE OR REPLACE FUNCTION reopen_lane() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM nonce_lanes WHERE wallet_id = NEW.wallet_id AND next = NEW.next_before AND foreign_nonce IS NOT DISTINCT FROM NEW.foreign_nonce
        FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the lane of wallet % is not as the reopening says', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM chain_attempts WHERE lane = NEW.wallet_id AND status IN ('signed', 'broadcast', 'included', 'replaced');
    IF FOUND THEN
        RAISE EXCEPTION 'a transaction of wallet % is undecided', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM cold_drafts WHERE lane = NEW.wallet_id AND status = 'open';
    IF FOUND THEN
        RAISE EXCEPTION 'a transaction of wallet % is being signed', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    UPDATE nonce_lanes SET next = NEW.next_after, foreign_nonce = NULL WHERE wallet_id = NEW.wallet_id;
    RETURN NEW;
END $$;
