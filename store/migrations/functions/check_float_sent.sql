-- A movement of float that was claimed may be sent for some minutes more, by the run that claimed it. Until then it fails only
-- by what the operator said, not by an officer's word: what is sent after that word would move money that the books say never
-- moved. The moment of the claim is the database's.
CREATE OR REPLACE FUNCTION check_float_sent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = 'unknown' THEN
        NEW.claimed_at := clock_timestamp();
    ELSIF clock_timestamp() < OLD.claimed_at + interval '3 minutes'
        AND (NEW.settled_by IS NOT NULL OR NOT EXISTS (SELECT FROM momo_callbacks c WHERE c.float_move_id = NEW.id)) THEN
        RAISE EXCEPTION 'the request for movement % of float may still be sent', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
