-- A sale is paid out only for final crypto of exactly the amount that it is priced by.
CREATE OR REPLACE FUNCTION check_order_claim() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM escrow_claims WHERE order_id = NEW.id AND kind IN ('exact', 'repriced') AND asset = NEW.asset AND amount = NEW.crypto_amount;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nothing was taken for order %', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
