-- A payout that ever had an unknown outcome, or that officers declared unpaid, stays doubted forever, so that its
-- refund needs another officer: neither is proof.
CREATE OR REPLACE FUNCTION doubt_order_payout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE order_payouts SET doubted = true WHERE id = NEW.object_id AND NOT doubted;
    RETURN NULL;
END $$;
