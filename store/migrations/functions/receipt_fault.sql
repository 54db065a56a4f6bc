-- Why an officer's receipt can't settle the mobile money payout of an order or a refund: it is of a payment to us, or two
-- officers attested it for another payout, or another one is booked with it. Empty when it can.
CREATE OR REPLACE FUNCTION receipt_fault(object uuid, named text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN EXISTS (SELECT FROM collections c WHERE c.receipt = named) THEN 'collection'
        WHEN named <> '' AND EXISTS (SELECT FROM payout_attestations w WHERE w.receipt = named AND w.object_id <> object) THEN 'attested'
        WHEN named <> '' AND EXISTS (SELECT FROM payment_attempts a WHERE a.receipt = named AND a.object_id <> object
            UNION ALL SELECT FROM refunds f WHERE f.receipt = named AND f.rail = 'momo' AND f.id <> object) THEN 'booked'
        ELSE '' END
$$;
