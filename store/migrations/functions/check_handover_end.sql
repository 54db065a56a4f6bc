-- The transaction that gives an account to its owners ends by what the final chain says. That another one may follow it has to be true on the
-- watch's chain too: one node's word would let both be executed.
CREATE OR REPLACE FUNCTION check_handover_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status = NEW.status OR NEW.status = 'expired' AND NOT EXISTS (SELECT FROM deposit_cursors c WHERE c.network = 'tron' AND c.final_time >= NEW.expires_at) THEN
        RAISE EXCEPTION 'the transaction % that gives account % to its owners may still be executed', NEW.tx_id, NEW.account_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
