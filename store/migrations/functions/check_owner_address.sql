-- The address of an owner whose key we hold is stored together with that key, by who made it. Who may not read keys stores no address.
CREATE OR REPLACE FUNCTION check_owner_address() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.address IS NOT DISTINCT FROM OLD.address THEN
            RETURN NEW;
        END IF;
    END IF;
    IF NEW.held AND NEW.address IS NOT NULL THEN
        IF NOT EXISTS (SELECT FROM multisig_owner_keys k WHERE (k.account_id, k.n) = (NEW.account_id, NEW.n)) THEN
            RAISE EXCEPTION 'owner % of account % has an address and no key', NEW.n, NEW.account_id USING ERRCODE = 'KV002';
        END IF;
    END IF;
    RETURN NEW;
END $$;
