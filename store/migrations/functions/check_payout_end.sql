-- Order and payout end together: a paid payout completes with its order, unless the order was given up before, and a
-- given-up one is cancelled with it. Checked when both are written.
CREATE OR REPLACE FUNCTION check_payout_end() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    o_status text;
    p_status text;
BEGIN
    SELECT o.status, p.status INTO o_status, p_status FROM orders o JOIN order_payouts p ON p.id = o.id WHERE o.id = NEW.id;
    IF NOT FOUND THEN
        RETURN NULL; -- it ended before its crypto was taken
    END IF;
    IF (o_status = 'completed' AND p_status <> 'completed') OR (o_status = 'failed' AND p_status NOT IN ('cancelled', 'completed'))
        OR (p_status = 'cancelled' AND o_status <> 'failed') OR (p_status = 'completed' AND o_status NOT IN ('completed', 'failed')) THEN
        RAISE EXCEPTION 'order % is % while its payout is %', NEW.id, o_status, p_status USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
