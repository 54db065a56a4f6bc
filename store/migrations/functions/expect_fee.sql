-- A payment without a transaction is assumed to cost as much as the previous one on its network.
CREATE OR REPLACE FUNCTION expect_fee() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO network_fees (payment_id, network, user_id, vendor_id, expected, at)
    SELECT NEW.id, NEW.network, c.user_id, c.vendor_id,
        coalesce((SELECT f.amount FROM network_fees f WHERE f.network = NEW.network AND f.amount > 0 ORDER BY f.at DESC LIMIT 1), 0), NEW.created_at
    FROM (SELECT 1) one LEFT JOIN fee_causer(NEW.purpose, NEW.object_id) c ON true LIMIT 1;
    RETURN NULL;
END $$;
