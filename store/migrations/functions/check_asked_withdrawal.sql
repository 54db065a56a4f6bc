-- A withdrawal is what its intent says: its requester's merchant's money, at the price of its quote, to a destination that the master
-- merchant confirmed.
CREATE OR REPLACE FUNCTION check_asked_withdrawal() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    said jsonb := intent_terms(NEW.intent_id, 'withdrawal.open', NEW.id, NEW.requested_by);
    coin text := CASE WHEN NEW.source_asset <> 'KES' THEN NEW.source_asset ELSE NEW.payout_asset END;
    net  text;
BEGIN
    SELECT coalesce(w.network, d.network) INTO net FROM otc_destinations d LEFT JOIN wallets w ON w.id = NEW.source_wallet_id
        WHERE d.id = NEW.destination_id AND d.merchant_id = NEW.merchant_id AND d.status = 'confirmed'
            AND d.kind = CASE NEW.method WHEN 'momo' THEN 'phone' WHEN 'bank' THEN 'bank' ELSE 'address' END
            AND (NEW.source_wallet_id IS NULL OR w.vendor_id = NEW.merchant_id AND w.custody = 'custodial' AND w.type = 'hot')
        FOR SHARE OF d;
    IF NOT FOUND OR NOT coalesce(
            NEW.status = 'requested' AND num_nonnulls(NEW.house_hold_id, NEW.bank_hold_id, NEW.sold_at, NEW.executed_by, NEW.transfer_intent_id, NEW.paid_by, NEW.ended_by, NEW.failure_id) = 0
            AND EXISTS (SELECT FROM users u WHERE u.id = NEW.requested_by AND u.is_active AND u.role IN ('vendor', 'subvendor') AND coalesce(u.vendor_id, u.id) = NEW.merchant_id)
            AND (said ->> 'destination_id', said ->> 'source_asset', said ->> 'payout_asset') = (NEW.destination_id::text, NEW.source_asset, NEW.payout_asset)
            AND (said ->> 'wallet_id', said ->> 'quote_id') IS NOT DISTINCT FROM (NEW.source_wallet_id::text, NEW.fx_quote_id::text)
            AND (NEW.fx_quote_id IS NULL) = (said ? 'amount')
            AND (NOT said ? 'amount' OR said ->> 'amount' LIKE '% KES' AND split_part(said ->> 'amount', ' ', 1)::numeric = NEW.payout_amount)
            AND (NEW.fx_quote_id IS NULL OR EXISTS (SELECT FROM fx_quotes q WHERE q.id = NEW.fx_quote_id AND q.purpose = 'otc_withdrawal' AND q.vendor_id = NEW.merchant_id
                AND q.status = 'consumed' AND (q.object_type, q.object_id) = ('otc_withdrawal', NEW.id)
                AND (q.method, q.network, q.asset, q.rate, q.fee) = (NEW.method, net, coin, NEW.rate, NEW.fee_amount) AND q.profile_id IS NOT DISTINCT FROM NEW.fee_profile_id
                AND CASE q.side WHEN 'sell' THEN (q.amount, q.fiat_amount) = (NEW.source_amount, NEW.payout_amount) ELSE (q.fiat_amount, q.amount) = (NEW.source_amount, NEW.payout_amount) END))
            AND (NEW.fx_quote_id IS NOT NULL OR NEW.fee_amount = fee_of(NEW.fee_profile_id, NEW.payout_amount, 'KES')
                AND NEW.fee_profile_id IS NOT DISTINCT FROM fee_profile_for('otc_withdrawal', NEW.merchant_id, coin, net, NEW.method, NEW.created_at)), false) THEN
        RAISE EXCEPTION 'withdrawal % is not what was asked for', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
