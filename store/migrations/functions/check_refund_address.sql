-- Where crypto goes back to is what the customer said at its order, the wallet of ours that it came from, or an address
-- that an officer gave. It is no address of the house, where it would belong to no one.
CREATE OR REPLACE FUNCTION check_refund_address() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM wallets w WHERE w.network = NEW.network AND w.address = NEW.address AND w.owner_id IS NULL) THEN
        RAISE EXCEPTION 'refund % would go to the house', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.addressed_by IS NULL AND NOT EXISTS (SELECT FROM orders o LEFT JOIN wallets w ON w.id = o.fund_wallet_id
            WHERE o.id = NEW.order_id AND o.network = NEW.network AND NEW.address = coalesce(w.address, o.refund_address)) THEN
        RAISE EXCEPTION 'refund % goes where nobody said', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.addressed_by IS NOT NULL AND NOT EXISTS (SELECT FROM users u WHERE u.id = NEW.addressed_by AND u.is_active
            AND u.role IN ('admin', 'treasury', 'otc_officer')) THEN
        RAISE EXCEPTION 'refund % goes where somebody says who may not', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
