-- A number belongs to the wallet that sends the payment's transaction: on a network with numbers, the one that pays its fee.
CREATE OR REPLACE FUNCTION check_nonce_wallet() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_payments p WHERE p.id = NEW.payment_id AND coalesce(p.fee_wallet_id, p.wallet_id) = NEW.wallet_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'payment % is not sent with a number of wallet %', NEW.payment_id, NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
