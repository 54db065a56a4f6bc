-- The house pays fees. A wallet may hold native coins of its owner besides the house's: no transaction is stored whose
-- fee could use them. Of two stored concurrently the second counts the first: it waits for the lock, which also covers
-- the booking of fees and native deposits.
CREATE OR REPLACE FUNCTION fee_is_the_houses() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    payer uuid := (SELECT coalesce(fee_wallet_id, wallet_id) FROM chain_payments WHERE id = NEW.payment_id);
    share numeric;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko gas ' || payer, 0));
    share := house_gas(payer, NEW.payment_id);
    IF NEW.fee_limit > share THEN
        RAISE EXCEPTION 'the fee of up to % of payment % is above the % that the house has in wallet %', NEW.fee_limit, NEW.payment_id, share, payer
            USING ERRCODE = 'KV005';
    END IF;
    RETURN NEW;
END $$;
