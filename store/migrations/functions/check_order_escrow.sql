-- A sale shows exactly the address that it borrowed: payments there come into our custody.
CREATE OR REPLACE FUNCTION check_order_escrow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM escrow_leases l JOIN wallets w ON w.id = l.wallet_id WHERE l.order_id = NEW.id AND l.ended_at IS NULL
        AND w.network = NEW.network AND NEW.escrow_network = w.network AND NEW.escrow_address = w.address AND NEW.wallet_address = w.address;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % does not show the escrow address that it borrowed', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
