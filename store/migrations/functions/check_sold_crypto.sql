-- The senders of the crypto are cleared before its price is paid; checked before each attempt, not only the first.
CREATE OR REPLACE FUNCTION check_sold_crypto() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM escrow_claims c JOIN chain_deposits d ON d.id = c.deposit_id
    WHERE c.order_id = NEW.id AND c.kind IN ('exact', 'repriced') AND NOT deposit_cleared(d);
    IF FOUND THEN
        RAISE EXCEPTION 'the sender of the crypto of order % is not cleared by a screening', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
