-- A refund address is the customer's for the order, our wallet that the crypto came from, or one given by an officer.
-- It is never the house's, where the money would have no owner.
CREATE OR REPLACE FUNCTION check_refund_address() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM wallets w WHERE w.network = NEW.network AND w.address = NEW.address AND w.owner_id IS NULL) THEN
        RAISE EXCEPTION 'refund % would go to the house', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.addressed_by IS NULL AND NOT EXISTS (SELECT FROM orders o LEFT JOIN wallets w ON w.id = o.fund_wallet_id
            WHERE o.id = NEW.order_id AND o.network = NEW.network AND NEW.address = coalesce(w.address, o.refund_address)) THEN
        RAISE EXCEPTION 'refund % has an address that no one set', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.addressed_by IS NOT NULL AND NOT EXISTS (SELECT FROM users u WHERE u.id = NEW.addressed_by AND u.is_active
            AND u.role IN ('admin', 'treasury', 'otc_officer')) THEN
        RAISE EXCEPTION 'the address of refund % was not set by an authorised officer', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
