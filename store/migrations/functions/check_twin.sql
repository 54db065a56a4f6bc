-- A counterpart wallet is of the wallet whose key it has.
CREATE OR REPLACE FUNCTION check_twin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM wallets w WHERE w.id = NEW.twin_of AND w.purpose <> 'twin' AND w.network <> NEW.network AND w.type = NEW.type AND w.custody = NEW.custody
        AND w.twin = CASE WHEN NEW.network = 'ethereum' THEN hex_address(NEW.address) ELSE NEW.address END;
    IF NOT FOUND OR NEW.owner_type <> 'treasury' THEN
        RAISE EXCEPTION 'wallet % is no twin of wallet %', NEW.id, NEW.twin_of USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
