-- A counterpart wallet signs with the key of its original wallet, which is sealed once. A wallet of several owners has no key.
CREATE OR REPLACE FUNCTION refuse_counterpart_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM wallets WHERE id = NEW.wallet_id AND purpose IN ('counterpart', 'multisig')) THEN
        RAISE EXCEPTION 'wallet % has no key of its own', NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
