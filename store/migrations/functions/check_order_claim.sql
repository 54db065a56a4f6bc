-- A sale is paid out only for final crypto of exactly its amount.
CREATE OR REPLACE FUNCTION check_order_claim() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM escrow_claims WHERE order_id = NEW.id AND kind IN ('exact', 'repriced') AND asset = NEW.asset AND amount = NEW.crypto_amount;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no deposit was taken for order %', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
