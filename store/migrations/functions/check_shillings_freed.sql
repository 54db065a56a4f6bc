-- The shillings of a sale whose payout was begun stay reserved until its crypto has gone back for good: the payout may prove
-- true, and then stands at the vendor's cost.
CREATE OR REPLACE FUNCTION check_shillings_freed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM orders o JOIN payment_attempts a ON a.object_type = 'order' AND a.object_id = o.id AND a.direction = 'payout'
            WHERE o.hold_id = NEW.id AND o.order_type LIKE 'OFF\_RAMP%')
        AND NOT EXISTS (SELECT FROM refunds r JOIN chain_payments p ON p.purpose = 'refund' AND p.object_id = r.id
            WHERE r.order_id = NEW.object_id AND r.exception_id IS NULL AND p.status = 'completed') THEN
        RAISE EXCEPTION 'a payout of order % may have been made, so its shillings stay reserved', NEW.object_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
