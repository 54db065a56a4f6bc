-- A customer's transfer to an address of the pool would be seen as ours, be owed to no owner and pay no order.
CREATE OR REPLACE FUNCTION refuse_escrow_transfer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM wallets WHERE network = NEW.network AND address = NEW.to_address AND purpose = 'escrow';
    IF FOUND THEN
        RAISE EXCEPTION 'transfer % goes to an address of the escrow pool', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
