-- A refund that an exception asks for is of that exception's money, while it is on its way back: of the same payment
-- and at most its amount, or of exactly the same deposit. There is one for each exception.
CREATE OR REPLACE FUNCTION check_exception_refund() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.rail = 'chain' THEN
        PERFORM FROM payment_exceptions x WHERE x.id = NEW.exception_id AND x.status = 'refunding' AND x.asset = NEW.asset AND x.amount = NEW.amount
            AND x.order_id IS NOT DISTINCT FROM NEW.order_id AND x.kind NOT IN ('paid_twice', 'reconciliation')
            AND deposit_of(x.receipt) = NEW.deposit_id FOR SHARE;
    ELSE
        PERFORM FROM payment_exceptions x WHERE x.id = NEW.exception_id AND x.status = 'refunding' AND x.receipt = NEW.collection
            AND x.attempt_id = NEW.attempt_id AND x.asset = NEW.asset AND x.amount >= NEW.amount
            AND x.kind NOT IN ('paid_twice', 'reconciliation') FOR SHARE;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'refund % is not of the money of exception %', NEW.id, NEW.exception_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
