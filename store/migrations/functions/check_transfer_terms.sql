-- A transfer is created with correct terms: its ends are wallets as stored, its value is near the market's, because limits and
-- officers go by it, and its fee is its quote's or that of the closest fees in force, of which the house pays itself none. The terms
-- are immutable, so they are checked now.
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
    IF NEW.fx_quote_id IS NULL AND (NEW.fee <> fee_of(NEW.fee_profile_id, NEW.amount, NEW.asset)
            OR NEW.fee_profile_id IS DISTINCT FROM (SELECT CASE WHEN u.role <> 'treasury'
                THEN fee_profile_for('transfer', NEW.vendor_id, NEW.asset, NEW.network, NULL, NEW.created_at) END FROM users u WHERE u.id = NEW.requested_by)) THEN
        RAISE EXCEPTION 'transfer % has not the fee of the closest fees in force', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
