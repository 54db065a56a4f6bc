-- The shillings that a sale reserved leave its reservation whole, and in two ways: its payout takes them, or the sale has
-- ended without one. When a payout was begun they also stay reserved until the crypto has gone back for good: that payout
-- may prove true, and then stands at the vendor's cost. What a payment by bank reserved at the bank stays so until the payment is over.
CREATE OR REPLACE FUNCTION check_shillings_freed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    o orders;
BEGIN
    SELECT * INTO o FROM orders WHERE id = NEW.object_id AND hold_id = NEW.id AND order_type LIKE 'OFF\_RAMP%';
    IF NOT FOUND THEN
        IF EXISTS (SELECT FROM order_payouts p WHERE p.id = NEW.object_id AND p.hold_id = NEW.id AND p.status = 'processing') THEN
            RAISE EXCEPTION 'the bank may be paying order %, so its money stays reserved', NEW.object_id USING ERRCODE = 'KV002';
        END IF;
        RETURN NULL; -- the crypto of an order, the money of a bank payout, or the reservation that a sale had before its price changed
    END IF;
    IF NEW.amount < OLD.amount THEN
        RAISE EXCEPTION 'the shillings of order % are not freed in part', o.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.status = 'captured' AND NOT EXISTS (SELECT FROM order_payouts p WHERE p.id = o.id AND p.status = 'completed') THEN
        RAISE EXCEPTION 'order % is not paid out, so nothing takes its shillings', o.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.status = 'released' AND o.status NOT IN ('cancelled', 'failed') THEN
        RAISE EXCEPTION 'order % is %, so its shillings stay reserved', o.id, o.status USING ERRCODE = 'KV002';
    END IF;
    IF NEW.status = 'released'
        AND EXISTS (SELECT FROM payment_attempts a WHERE a.object_type = 'order' AND a.object_id = o.id AND a.direction = 'payout')
        AND NOT EXISTS (SELECT FROM refunds r JOIN chain_payments p ON p.purpose = 'refund' AND p.object_id = r.id
            WHERE r.order_id = o.id AND r.exception_id IS NULL AND p.status = 'completed') THEN
        RAISE EXCEPTION 'a payout of order % may have been made, so its shillings stay reserved', o.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
