-- A release leaves the running sums only with an object that ended and moves nothing, or of which nothing is on its way, or when
-- another one takes its place.
CREATE OR REPLACE FUNCTION check_release_end() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    still boolean;
BEGIN
    IF EXISTS (SELECT FROM releases o WHERE o.purpose = NEW.purpose AND o.object_id = NEW.object_id AND o.ended_at IS NULL) THEN
        RETURN NULL; -- which counts instead
    END IF;
    CASE NEW.purpose
        WHEN 'transfer' THEN
            still := NOT EXISTS (SELECT FROM transfers f WHERE f.id = NEW.object_id AND f.status IN ('cancelled', 'rejected', 'blocked', 'failed'));
        WHEN 'funding' THEN
            still := NOT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'funding' AND p.object_id = NEW.object_id AND p.status = 'cancelled');
        WHEN 'refund' THEN
            still := EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'refund' AND p.object_id = NEW.object_id AND p.status <> 'cancelled')
                AND NEW.passed_at IS NOT NULL;
        WHEN 'payout' THEN
            still := EXISTS (SELECT FROM order_payouts p WHERE p.id = NEW.object_id AND p.rail = 'bank' AND p.status IN ('processing', 'completed'));
    END CASE;
    IF still OR NEW.passed_at IS NOT NULL AND EXISTS (SELECT FROM payment_attempts a WHERE NEW.purpose IN ('refund', 'payout') AND a.object_id = NEW.object_id AND a.direction = 'payout'
            AND a.status IN ('created', 'unknown', 'accepted', 'succeeded')) THEN
        RAISE EXCEPTION 'the % of release % may still move money', NEW.purpose, NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
