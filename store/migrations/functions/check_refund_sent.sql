-- A refund in crypto is completed by its payment, or by the payout that it replaced.
CREATE OR REPLACE FUNCTION check_refund_sent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'refund' AND p.object_id = NEW.id AND p.status = 'completed' AND p.tx_id = NEW.receipt)
        AND NOT EXISTS (SELECT FROM order_payouts y WHERE y.id = NEW.order_id AND y.status = 'completed' AND y.receipt = NEW.receipt
            AND NEW.exception_id IS NULL AND NOT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'refund' AND p.object_id = NEW.id AND p.status <> 'cancelled')) THEN
        RAISE EXCEPTION 'refund % is not sent', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
