-- Reports whether mobile money of a deposit may be on its way: a source reports a payment under its reference that nothing has explained
-- yet, an officer named one, or a prompt of it has not ended. A notice that the operator's statement does not list within two days is none.
CREATE OR REPLACE FUNCTION deposit_may_be_paid(d otc_deposits, moment timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM c2b_payments p WHERE p.reference = d.payment_reference AND p.status = 'unmatched' AND p.exception_id IS NULL AND p.paid_at > moment - interval '49 hours')
        OR EXISTS (SELECT FROM c2b_payments p LEFT JOIN payment_exceptions x ON x.id = p.exception_id
            WHERE p.id = d.named_payment_id AND p.status = 'unmatched' AND (x.id IS NULL OR x.status = 'open'))
        OR d.method = 'momo' AND EXISTS (SELECT FROM payment_attempts a WHERE a.deposit_id = d.id AND a.status IN ('created', 'unknown', 'accepted'))
$$;
