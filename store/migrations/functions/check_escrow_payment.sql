-- Runs when a payment is approved, at the end of the transaction because its hold may be written last, and again
-- whenever it is signed, because conditions may have changed.
CREATE OR REPLACE FUNCTION check_escrow_payment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    p     chain_payments;
    fault text;
BEGIN
    SELECT * INTO p FROM chain_payments WHERE id = NEW.id;
    IF p.status NOT IN ('approved', 'signed') OR EXISTS (SELECT FROM chain_attempts WHERE payment_id = p.id AND adopted AND status = 'included') THEN
        RETURN NULL; -- it was given up at once, or is already paid
    END IF;
    CASE p.purpose
        WHEN 'funding' THEN fault := funding_fault(p);
        WHEN 'refund' THEN fault := refund_fault(p);
        WHEN 'fee_sweep' THEN fault := fee_sweep_fault(p);
        ELSE
            PERFORM FROM orders WHERE id = p.object_id;
            IF FOUND THEN
                fault := order_sweep_fault(p);
            ELSE
                fault := kept_sweep_fault(p);
            END IF;
    END CASE;
    IF fault <> '' THEN
        RAISE EXCEPTION 'chain payment % is refused: %', p.id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
