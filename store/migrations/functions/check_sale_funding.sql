-- A sale whose crypto comes from a wallet in our custody has its payment, which holds the crypto, from the beginning. When
-- the sale is cancelled, the payment is given up and the crypto is free again.
CREATE OR REPLACE FUNCTION check_sale_funding() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM chain_payments p JOIN holds h ON h.id = p.hold_id WHERE p.purpose = 'funding' AND p.object_id = NEW.id
            AND (NEW.status <> 'cancelled' OR p.status = 'cancelled' AND h.status <> 'held')) THEN
        RAISE EXCEPTION 'order % is % and the hold of the crypto in its wallet does not match', NEW.id, NEW.status USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
