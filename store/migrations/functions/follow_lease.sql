-- Keeps the status of an address equal to that of its lease.
CREATE OR REPLACE FUNCTION follow_lease() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.ended_at IS NULL THEN
        UPDATE escrow_addresses SET status = 'leased', last_used_at = NEW.leased_at, rest_until = NULL, updated_at = NEW.leased_at, version = version + 1
            WHERE id = NEW.wallet_id;
    ELSE
        UPDATE escrow_addresses SET status = 'resting', rest_until = NEW.rest_until, updated_at = NEW.ended_at, version = version + 1
            WHERE id = NEW.wallet_id;
    END IF;
    RETURN NULL;
END $$;
