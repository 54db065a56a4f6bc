-- A refund requested by an exception covers that exception's money while it is being refunded: of the same payment and
-- at most its amount, or exactly the same deposit. Each exception has one refund. Late and duplicate shillings go back to
-- the phone that was prompted. Without an officer only late ones do: of an order that its customer cancelled, of the amount
-- that was asked for, up to the value above which an officer has to approve refunds. What was paid above or below the price
-- goes back by rule, so it is exactly the surplus or the whole payment, to the phone that was prompted or that paid.
CREATE OR REPLACE FUNCTION check_exception_refund() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    x payment_exceptions;
BEGIN
    IF NEW.rail = 'bank' THEN
        RETURN NEW; -- see check_bank_refund
    END IF;
    IF NEW.rail = 'chain' THEN
        SELECT * INTO x FROM payment_exceptions e WHERE e.id = NEW.exception_id AND e.status = 'refunding' AND e.asset = NEW.asset AND e.amount = NEW.amount
            AND e.order_id IS NOT DISTINCT FROM NEW.order_id AND e.kind NOT IN ('paid_twice', 'reconciliation')
            AND deposit_of(e.receipt) = NEW.deposit_id FOR SHARE;
    ELSE
        SELECT * INTO x FROM payment_exceptions e WHERE e.id = NEW.exception_id AND e.status = 'refunding' AND e.receipt = NEW.collection
            AND e.attempt_id = NEW.attempt_id AND e.asset = NEW.asset AND e.amount >= NEW.amount
            AND e.kind NOT IN ('paid_twice', 'reconciliation') FOR SHARE;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'refund % does not match exception %', NEW.id, NEW.exception_id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.rail = 'momo' AND x.kind IN ('under', 'over') AND NOT EXISTS (SELECT FROM collections c
            JOIN orders o ON o.id = c.object_id AND c.object_type = 'order' JOIN payment_attempts a ON a.id = c.attempt_id
            WHERE c.receipt = NEW.collection AND c.attempt_id = NEW.attempt_id AND o.id = NEW.order_id AND c.kind = x.kind
                AND NEW.amount = c.amount - CASE x.kind WHEN 'over' THEN o.fiat_amount ELSE 0 END
                AND (a.phone = NEW.phone OR encode(sha256(convert_to(NEW.phone, 'UTF8')), 'hex') IN (
                    SELECT m.party_hash FROM momo_receipts m WHERE m.receipt = c.receipt
                    UNION ALL SELECT n.party_hash FROM c2b_payments n WHERE n.receipt = c.receipt))) THEN
        RAISE EXCEPTION 'refund % is not what was paid above or below the price of order %, to its payer', NEW.id, NEW.order_id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.rail = 'chain' OR x.kind NOT IN ('late', 'duplicate') THEN
        RETURN NEW;
    END IF;
    IF NOT EXISTS (SELECT FROM payment_attempts a WHERE a.id = NEW.attempt_id AND a.phone = NEW.phone) THEN
        RAISE EXCEPTION 'refund % goes to another phone than the one that was prompted', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.requested_by IS NULL AND NOT EXISTS (SELECT FROM orders o, payment_attempts a, approval_rules r WHERE x.kind = 'late' AND o.id = NEW.order_id
            AND o.status = 'cancelled' AND o.status_detail = 'cancelled_by_customer' AND a.id = NEW.attempt_id AND a.amount = NEW.amount
            AND r.object_type = 'refund' AND NEW.amount <= r.one_above) THEN
        RAISE EXCEPTION 'no officer requested refund %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
