-- A number is taken together with the bytes that use it, or not at all: a number without bytes would block every later
-- payment of the wallet.
CREATE OR REPLACE FUNCTION nonce_has_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_attempts WHERE payment_id = NEW.payment_id AND nonce_wallet = NEW.wallet_id AND nonce = NEW.nonce;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nonce % of wallet % was taken without a transaction', NEW.nonce, NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
