-- Keeps the status consistent with the leases, and lets no address back into use with money on it or before it has
-- rested.
CREATE OR REPLACE FUNCTION check_escrow_address() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    why text;
BEGIN
    IF (NEW.status = 'leased') <> EXISTS (SELECT FROM escrow_leases WHERE wallet_id = NEW.id AND ended_at IS NULL) THEN
        RAISE EXCEPTION 'escrow address % is %, which contradicts its leases', NEW.id, NEW.status USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status = 'free' AND OLD.status <> 'free' THEN
        IF NEW.rest_until > NEW.updated_at THEN
            RAISE EXCEPTION 'escrow address % rests until %', NEW.id, NEW.rest_until USING ERRCODE = 'KV001';
        END IF;
        why := escrow_trouble(NEW.id);
        IF why IS NOT NULL THEN
            RAISE EXCEPTION 'escrow address % is not free: %', NEW.id, why USING ERRCODE = 'KV001';
        END IF;
    END IF;
    RETURN NEW;
END $$;
