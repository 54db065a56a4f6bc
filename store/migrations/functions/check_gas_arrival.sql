-- Gas arrives by a transaction of a top-up, in the block that has the transaction.
CREATE OR REPLACE FUNCTION check_gas_arrival() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id
        WHERE a.id = NEW.attempt_id AND a.status = 'included' AND (a.block, a.block_id) = (NEW.block, NEW.block_id) AND p.purpose = 'gas';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'transaction % brings no gas in block %', NEW.attempt_id, NEW.block_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
