-- Checks an officer's right to confirm, and that an order has one reference and a reference one order. The lock is on
-- the reference: two orders with it must not both pass at the same moment.
CREATE OR REPLACE FUNCTION check_bank_confirmation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM order_payouts p JOIN orders o ON o.id = p.id
        WHERE p.id = NEW.order_id AND p.rail = 'bank' AND p.status = 'processing' AND o.status = 'processing' FOR UPDATE OF p;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % does not wait for a payment by bank', NEW.order_id USING ERRCODE = 'KV001';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        RETURN NEW;
    END IF;
    PERFORM FROM users u JOIN orders o ON o.id = NEW.order_id WHERE u.id = NEW.officer_id AND u.is_active AND u.role IN ('admin', 'treasury')
        AND u.id <> o.customer_id AND u.id <> o.vendor_id FOR SHARE OF u;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the officer may not confirm the bank payment of order %', NEW.order_id USING ERRCODE = 'KV006';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko bank reference ' || NEW.reference, 0));
    IF EXISTS (SELECT FROM bank_confirmations c WHERE c.reference = NEW.reference AND c.order_id <> NEW.order_id AND c.withdrawn_at IS NULL)
        OR EXISTS (SELECT FROM bank_confirmations c WHERE c.order_id = NEW.order_id AND c.reference <> NEW.reference AND c.withdrawn_at IS NULL)
        OR NOT EXISTS (SELECT FROM order_payouts p WHERE p.id = NEW.order_id AND p.amount = NEW.amount)
        OR NEW.paid_on > (NEW.created_at AT TIME ZONE 'Africa/Nairobi')::date THEN
        RAISE EXCEPTION 'the confirmation of order % contradicts earlier confirmations', NEW.order_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
