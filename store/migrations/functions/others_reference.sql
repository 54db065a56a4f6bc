-- Reports whether a reference is that of an order or a deposit of somebody else than a merchant: who wrote it paid for that.
CREATE OR REPLACE FUNCTION others_reference(written text, merchant uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM otc_deposits d WHERE d.payment_reference = written AND d.merchant_id <> merchant)
        OR EXISTS (SELECT FROM orders o WHERE o.payment_reference = written AND o.customer_id <> merchant)
$$;
