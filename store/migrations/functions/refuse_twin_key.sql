-- A counterpart wallet signs with the key of the wallet that it is of, which is sealed once.
CREATE OR REPLACE FUNCTION refuse_twin_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM wallets WHERE id = NEW.wallet_id AND purpose = 'twin') THEN
        RAISE EXCEPTION 'wallet % has the key of its twin', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
