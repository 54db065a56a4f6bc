-- Adds a new escrow wallet to the pool. Its key has to sign online, so it must be hot.
CREATE OR REPLACE FUNCTION add_escrow_address() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.type <> 'hot' OR NEW.custody <> 'custodial' THEN
        RAISE EXCEPTION 'wallet % of the escrow pool must be a hot wallet in our custody', NEW.id USING ERRCODE = 'KV002';
    END IF;
    INSERT INTO escrow_addresses (id, network, status, label, created_at, updated_at)
        VALUES (NEW.id, NEW.network, 'free', NEW.label, NEW.created_at, NEW.created_at);
    UPDATE escrow_requests SET made_at = NEW.created_at WHERE id = NEW.id AND made_at IS NULL;
    RETURN NULL;
END $$;
