-- A counterpart wallet signs with the key of its original wallet, which is sealed once.
CREATE OR REPLACE FUNCTION refuse_counterpart_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM wallets WHERE id = NEW.wallet_id AND purpose = 'counterpart') THEN
        RAISE EXCEPTION 'wallet % has the key of its counterpart', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
