-- A counterpart wallet refers to the wallet whose key it has.
CREATE OR REPLACE FUNCTION check_counterpart() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM wallets w WHERE w.id = NEW.counterpart_of AND w.purpose <> 'counterpart' AND w.network <> NEW.network AND w.type = NEW.type AND w.custody = NEW.custody
        AND w.counterpart = CASE WHEN NEW.network = 'ethereum' THEN hex_address(NEW.address) ELSE NEW.address END;
    IF NOT FOUND OR NEW.owner_type <> 'treasury' THEN
        RAISE EXCEPTION 'wallet % is no counterpart of wallet %', NEW.id, NEW.counterpart_of USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
