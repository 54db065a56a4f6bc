-- The moment from which the payouts of a refund's order allow it; infinity while one may have paid.
CREATE OR REPLACE FUNCTION refund_ready_at(f refunds) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT coalesce(max(CASE WHEN a.status IN ('refused', 'failed')
            THEN coalesce(a.settled_at, a.submitted_at, a.created_at) + (SELECT cool_off_seconds FROM refund_policy) * interval '1 second'
            ELSE 'infinity' END), f.created_at)
    FROM payment_attempts a WHERE a.object_type = 'order' AND a.object_id = f.order_id AND a.direction = 'payout' AND f.exception_id IS NULL
$$;
