-- Lends an address that is free, rested and empty.
CREATE OR REPLACE FUNCTION check_lease() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    a   escrow_addresses;
    why text;
BEGIN
    SELECT * INTO a FROM escrow_addresses WHERE id = NEW.wallet_id FOR NO KEY UPDATE;
    IF a.status IS DISTINCT FROM 'free' THEN
        RAISE EXCEPTION 'escrow address % is %', NEW.wallet_id, a.status USING ERRCODE = 'KV001';
    END IF;
    IF NEW.ended_at IS NOT NULL THEN
        RAISE EXCEPTION 'a new lease must be open' USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM escrow_leases WHERE wallet_id = NEW.wallet_id AND rest_until > NEW.leased_at;
    IF FOUND OR a.rest_until > NEW.leased_at THEN
        RAISE EXCEPTION 'escrow address % rests', NEW.wallet_id USING ERRCODE = 'KV001';
    END IF;
    why := escrow_trouble(NEW.wallet_id);
    IF why IS NOT NULL THEN
        RAISE EXCEPTION 'escrow address % can''t be lent: %', NEW.wallet_id, why USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
