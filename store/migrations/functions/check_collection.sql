-- Money is booked as received only for an attempt to collect it that has succeeded. Of another amount than the one that was asked
-- for, the operator's statement must list the receipt: the query that stands behind a result names no amount, and what is beyond
-- the price goes back.
CREATE OR REPLACE FUNCTION check_collection() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asked numeric;
BEGIN
    SELECT a.amount INTO asked FROM payment_attempts a
        WHERE a.id = NEW.attempt_id AND a.direction = 'collection' AND a.status = 'succeeded' AND a.asset = NEW.asset FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'payment % is not of a successful collection', NEW.receipt USING ERRCODE = 'KV002';
    END IF;
    IF NEW.amount <> asked AND NOT EXISTS (SELECT FROM momo_receipts r
            WHERE r.receipt = NEW.receipt AND r.channel = 'statement' AND r.asset = NEW.asset AND r.amount = NEW.amount) THEN
        RAISE EXCEPTION 'payment % is not of the amount that was asked for, and the statement does not list it', NEW.receipt USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
