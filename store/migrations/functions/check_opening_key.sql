-- The key with which an account on TRON begins is made once, while the account is prepared. A new seal holds the key of the seal before it, under
-- another master key.
CREATE OR REPLACE FUNCTION check_opening_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seal = 1 THEN
        PERFORM FROM multisig_accounts a WHERE a.id = NEW.account_id AND a.kind = 'tron' AND NOT a.adopted AND a.status = 'preparing';
    ELSE
        PERFORM FROM multisig_opening_keys k WHERE k.account_id = NEW.account_id AND k.seal = NEW.seal - 1 AND k.address = NEW.address
            AND k.public_key = NEW.public_key AND k.algorithm = NEW.algorithm AND k.master_key <> NEW.master_key;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'key % with which account % begins is not its key', NEW.seal, NEW.account_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
