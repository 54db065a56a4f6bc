-- Reports whether the customer or the merchant of an order is switched off. The house as a vendor never logs in, so it
-- is not meant to be active.
CREATE OR REPLACE FUNCTION order_party_gone(order_id uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM orders o JOIN users u ON u.id IN (o.customer_id, o.vendor_id) WHERE o.id = $1 AND NOT u.is_active AND u.id <> platform_treasury());
END $$;
