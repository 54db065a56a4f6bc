-- Compares each step of a payout with its attempts, or with what officers say. A payment by bank is over unpaid when two officers agreed to
-- exactly that in this transaction, neither of them takes part in the order, and no statement of the bank shows the payment.
CREATE OR REPLACE FUNCTION check_payout_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status IN ('refused', 'cancelled') AND (
            EXISTS (SELECT FROM payment_attempts a WHERE a.object_type = 'order' AND a.object_id = NEW.id AND a.direction = 'payout'
                AND a.status IN ('created', 'unknown', 'accepted', 'succeeded'))
            OR EXISTS (SELECT FROM bank_confirmations c WHERE c.order_id = NEW.id AND c.withdrawn_at IS NULL)) THEN
        RAISE EXCEPTION 'the payout of order % has moved money, or may', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status = 'cancelled' AND NEW.rail = 'momo' AND put_back() THEN
        RAISE EXCEPTION 'the payout of order % may have been made before the database was put back', NEW.id USING ERRCODE = 'KV055';
    END IF;
    IF NEW.status = 'refused' AND NEW.rail = 'bank' THEN
        IF put_back() THEN
            RAISE EXCEPTION 'the payout of order % may have been made before the database was put back', NEW.id USING ERRCODE = 'KV055';
        END IF;
        IF NOT EXISTS (SELECT FROM control_changes c JOIN orders o ON o.id = NEW.id WHERE c.kind = 'bank_payout_refusal' AND c.applied_in = pg_current_xact_id()
                AND (c.change ->> 'order_id', c.was ->> 'hold_id') = (NEW.id::text, OLD.hold_id::text)
                AND c.proposed_by NOT IN (o.customer_id, o.vendor_id) AND c.decided_by NOT IN (o.customer_id, o.vendor_id)) THEN
            RAISE EXCEPTION 'no second officer agreed that the bank did not pay order %', NEW.id USING ERRCODE = 'KV006';
        END IF;
        IF payout_shown(OLD) IS NOT NULL THEN
            RAISE EXCEPTION 'the payout of order % was made, as a statement of the bank shows', NEW.id USING ERRCODE = 'KV001';
        END IF;
    END IF;
    IF NEW.status = 'processing' AND NOT EXISTS (SELECT FROM orders o WHERE o.id = NEW.id AND o.status = 'processing') THEN
        RAISE EXCEPTION 'order % has no payout in shillings', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status = 'processing' AND order_party_gone(NEW.id) THEN
        RAISE EXCEPTION 'a party of order % is switched off', NEW.id USING ERRCODE = 'KV058';
    END IF;
    IF NEW.status = 'completed' AND NEW.rail = 'momo' AND NOT EXISTS (SELECT FROM payment_attempts a WHERE a.id = NEW.paid_by
            AND a.object_type = 'order' AND a.object_id = NEW.id AND a.direction = 'payout' AND a.status = 'succeeded'
            AND a.moved = NEW.amount AND a.receipt = NEW.receipt) THEN
        RAISE EXCEPTION 'no attempt has paid order %', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.status = 'completed' AND NEW.rail = 'bank' THEN
        IF NOT EXISTS (SELECT FROM releases r WHERE r.purpose = 'payout' AND r.object_id = NEW.id AND r.ended_at IS NULL AND r.passed_in = pg_current_xact_id()
                AND NOT EXISTS (SELECT FROM bank_confirmations c WHERE c.order_id = NEW.id AND c.withdrawn_at IS NULL AND c.reference <> NEW.receipt)) THEN
            RAISE EXCEPTION 'the bank payment of order % is not released', NEW.id USING ERRCODE = 'KV006';
        END IF;
    END IF;
    RETURN NEW;
END $$;
