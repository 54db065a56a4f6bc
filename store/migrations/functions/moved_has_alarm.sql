-- A transaction that was carried out without making its payment can't be stored without its alarm.
CREATE OR REPLACE FUNCTION moved_has_alarm() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM deposit_quarantine WHERE network = NEW.network AND tx_id = NEW.tx_id AND reason = 'unexpected_send';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'transaction % moved money and has no alarm', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
