-- An order takes no offer whose rate is more than a fifth from the market's, and no more of one when it is by then: crypto for
-- next to nothing, or shillings for next to no crypto, would leave around the rule about all that leaves.
CREATE OR REPLACE FUNCTION check_rate_collar() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    market numeric := reference_rate(NEW.asset, CASE TG_OP WHEN 'INSERT' THEN NEW.created_at ELSE clock_timestamp() END);
BEGIN
    IF coalesce(abs(NEW.rate - market) > market * 0.2, true) THEN
        RAISE EXCEPTION 'the rate of order % is too far from the market', NEW.id USING ERRCODE = 'KV059';
    END IF;
    RETURN NEW;
END $$;
