-- An entry of the ledger that books a fee sweep is that one's.
CREATE OR REPLACE FUNCTION check_fee_sweep_source() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM fee_sweeps s WHERE s.id = NEW.object_id AND NEW.key = 'fee_sweep:' || s.id AND s.asset = 'KES') THEN
        RAISE EXCEPTION 'entry % is no fee sweep', NEW.key USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
