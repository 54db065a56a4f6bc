-- A wallet is made because somebody asked for it: a user by an intent, the pool of escrow addresses by a request. The
-- account of a wallet's key on another network has no key of its own. Two officers agreed to an account of several owners (check_multisig_end).
CREATE OR REPLACE FUNCTION check_asked_wallet() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    said jsonb;
BEGIN
    IF NEW.purpose IN ('counterpart', 'multisig') OR NEW.purpose = 'escrow' AND NEW.intent_id IS NULL
            AND EXISTS (SELECT FROM escrow_requests r WHERE r.id = NEW.id AND r.network = NEW.network) THEN
        RETURN NEW;
    END IF;
    said := intent_terms(NEW.intent_id, 'wallet.create', NEW.id, NEW.created_by);
    IF (said ->> 'owner_type', said ->> 'owner_id', coalesce(said ->> 'purpose', ''), said ->> 'network', said ->> 'type')
            IS DISTINCT FROM (NEW.owner_type, NEW.owner_id::text, NEW.purpose, NEW.network::text, NEW.type) THEN
        RAISE EXCEPTION 'wallet % is not what was asked for', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
