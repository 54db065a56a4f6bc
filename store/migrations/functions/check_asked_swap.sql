-- A swap is what its intent says: the quote that its requester asked for, while it holds and by who may still swap in its wallet, out of the
-- treasury wallet of the network. Its value is near the market's, because limits and officers go by it.
CREATE OR REPLACE FUNCTION check_asked_swap() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    said jsonb := intent_terms(NEW.intent_id, 'swap.open', NEW.id, NEW.requested_by);
BEGIN
    IF NOT coalesce(said ->> 'quote_id' = NEW.quote_id::text AND NEW.status = 'reserved' AND num_nonnulls(NEW.return_hold_id, NEW.resolution_id, NEW.difference, NEW.collected_at) = 0
            AND swap_wallet(NEW.wallet_id, NEW.requested_by) AND NEW.house_wallet_id = swap_treasury(NEW.network)
            AND EXISTS (SELECT FROM wallets w WHERE w.id = NEW.house_wallet_id AND w.type = 'hot')
            AND EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.owner_id IS NOT DISTINCT FROM NEW.owner_id AND w.vendor_id IS NOT DISTINCT FROM NEW.vendor_id)
            AND EXISTS (SELECT FROM swap_quotes q WHERE q.id = NEW.quote_id AND q.asked_by = NEW.requested_by AND q.expires_at > greatest(NEW.created_at, clock_timestamp() - interval '5 seconds')
                AND (q.wallet_id, q.network, q.from_asset, q.from_amount, q.to_asset, q.to_amount, q.fee, q.rate)
                    = (NEW.wallet_id, NEW.network, NEW.from_asset, NEW.from_amount, NEW.to_asset, NEW.to_amount, NEW.fee, NEW.rate)
                AND q.profile_id IS NOT DISTINCT FROM NEW.fee_profile_id), false) THEN
        RAISE EXCEPTION 'swap % is not what was asked for', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.value < NEW.from_amount * coalesce(greatest(0.8 * reference_rate(NEW.from_asset, NEW.created_at), (SELECT v.agreed FROM valuations v WHERE v.asset = NEW.from_asset)), 'Infinity') THEN
        RAISE EXCEPTION 'swap % has a value below that of its amount', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
