-- A payout that was of unknown outcome once, or that persons declared not to be made, stays doubted for ever, so that
-- its refund needs another person: neither is proof.
CREATE OR REPLACE FUNCTION doubt_order_payout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE order_payouts SET doubted = true WHERE id = NEW.order_id AND NOT doubted;
    RETURN NULL;
END $$;
