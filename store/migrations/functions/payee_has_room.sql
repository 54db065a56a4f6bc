-- Whether a payee may get an amount by mobile money on the day of a moment in Kenya, beside what was or may have been
-- paid since its midnight, by attempts or, of refunds, by officers with another receipt. It locks the payee until the
-- end of the transaction, so that two payouts can't exceed the provider's daily limit together. An amount above the
-- whole limit, which earlier terms allowed, never fits: the provider decides about it. Without terms there is no room.
CREATE OR REPLACE FUNCTION payee_has_room(payee text, wanted numeric, moment timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    most     numeric;
    midnight timestamptz := date_trunc('day', moment AT TIME ZONE interval '3 hours') AT TIME ZONE interval '3 hours';
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko payee ' || payee, 0));
    SELECT m.payee_day INTO most FROM momo_terms m WHERE m.valid_from <= moment ORDER BY m.valid_from DESC LIMIT 1;
    RETURN coalesce(wanted > most OR wanted + (SELECT coalesce(sum(a.amount), 0) FROM payment_attempts a
        WHERE a.direction = 'payout' AND a.phone = payee AND (a.status IN ('created', 'unknown', 'accepted')
            OR (a.status = 'succeeded' AND a.settled_at >= midnight)))
        + (SELECT coalesce(sum(f.amount), 0) FROM refunds f WHERE f.rail = 'momo' AND f.status = 'completed' AND f.paid_by IS NULL
            AND f.phone = payee AND f.completed_at >= midnight
            AND NOT EXISTS (SELECT FROM payment_attempts a WHERE a.receipt = f.receipt AND a.receipt <> '')) <= most, false);
END $$;
