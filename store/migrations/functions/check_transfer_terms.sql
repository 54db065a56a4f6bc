-- A transfer is created with correct terms: its ends are wallets as stored, and its value is near the market's, because limits
-- and officers go by it. The terms are immutable, so they are checked now.
CREATE OR REPLACE FUNCTION check_transfer_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.network = NEW.network AND w.address = NEW.from_address
            AND w.type = NEW.wallet_type AND w.custody = 'custodial' AND w.owner_id IS NOT DISTINCT FROM NEW.sender_id) THEN
        RAISE EXCEPTION 'transfer % has another sender than its wallet', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.kind = 'internal' AND NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.to_wallet_id AND w.network = NEW.network
            AND w.address = NEW.to_address AND w.owner_id IS NOT DISTINCT FROM NEW.recipient_id) THEN
        RAISE EXCEPTION 'transfer % leaves our custody and is called internal', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.value < NEW.amount * NEW.rate OR coalesce(NEW.rate < 0.8 * reference_rate(NEW.asset, NEW.created_at), true)
        OR NEW.rate < (SELECT v.agreed FROM valuations v WHERE v.asset = NEW.asset) THEN
        RAISE EXCEPTION 'transfer % has a value below that of its amount', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
