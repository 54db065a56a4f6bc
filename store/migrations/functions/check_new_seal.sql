-- A new seal holds the key of the seal before it, under another master key. What only the cold machine opens has one seal.
CREATE OR REPLACE FUNCTION check_new_seal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM wallet_keys k WHERE k.wallet_id = NEW.wallet_id AND k.seal = NEW.seal - 1
            AND k.public_key = NEW.public_key AND k.algorithm = NEW.algorithm AND k.master_key <> NEW.master_key
            AND k.master_key NOT LIKE 'cold:%' AND NEW.master_key NOT LIKE 'cold:%'
    ) THEN
        RAISE EXCEPTION 'seal % of the key of wallet % does not follow the one before', NEW.seal, NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
