-- An order is what its intent says: who asks, for whom, how much of what and against which offer, and where its money goes. Where the
-- intent leaves open who is paid, it is the customer: its own number, or one of its own wallets.
CREATE OR REPLACE FUNCTION check_asked_order() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sale          boolean := NEW.order_type LIKE 'OFF\_RAMP%';
    said          jsonb := intent_terms(NEW.intent_id, CASE WHEN sale THEN 'sale.open' ELSE 'purchase.open' END, NEW.id, coalesce(NEW.opened_by, NEW.customer_id));
    fiat          numeric := split_part(said ->> 'fiat', ' ', 1)::numeric;
    -- Where the customer's crypto goes, or goes back to.
    asked_address text := said ->> CASE WHEN sale THEN 'refund_address' ELSE 'wallet_address' END;
    goes_to       text := CASE WHEN sale THEN NEW.refund_address ELSE NEW.wallet_address END;
BEGIN
    IF NOT coalesce(said ->> 'customer_id' = NEW.customer_id::text
            AND coalesce(said ->> 'type', 'ON_RAMP_BUY') = NEW.order_type
            AND coalesce(said ->> 'subtype', CASE WHEN sale THEN 'standard_offramp' ELSE 'standard_onramp' END) = NEW.order_subtype
            AND (said ->> 'offer_id', said ->> 'quote_id', said ->> 'fund_wallet_id')
                IS NOT DISTINCT FROM (NEW.offer_id::text, NEW.quote_id::text, NEW.fund_wallet_id::text)
            AND CASE
                WHEN said ? 'crypto' THEN split_part(said ->> 'crypto', ' ', 1)::numeric = NEW.crypto_amount AND split_part(said ->> 'crypto', ' ', 2) = NEW.asset
                WHEN sale THEN NEW.fiat_amount >= fiat
                ELSE NEW.fiat_amount = fiat
            END
            AND coalesce((said ->> 'expected_rate')::numeric = NEW.rate, true)
            AND coalesce(said ->> 'network' = NEW.network, true)
            AND coalesce((said ->> 'expires_at')::timestamptz = NEW.expires_at, true)
            AND coalesce(said ->> 'payout_method', 'momo') = NEW.payment_method
            AND coalesce(said ->> 'phone', (SELECT u.phone_number FROM users u WHERE u.id = NEW.customer_id)) = NEW.payment_phone
            AND CASE
                WHEN asked_address IS NOT NULL THEN goes_to = asked_address
                ELSE sale AND goes_to = '' OR (SELECT coalesce(w.vendor_id, w.owner_id) FROM wallets w WHERE (w.network, w.address) = (NEW.network, goes_to)) = NEW.customer_id
            END
            AND (coalesce(said ->> 'sender_name', ''), coalesce(said ->> 'sender_country', ''), coalesce(said ->> 'sender_phone', ''))
                = (NEW.sender_name, NEW.sender_country, NEW.sender_phone)
            AND asked_beneficiary(said) = (SELECT coalesce(jsonb_object_agg(f.key, f.value) FILTER (WHERE f.value <> '""'), '{}') FROM jsonb_each(NEW.beneficiary) f),
            false) THEN
        RAISE EXCEPTION 'order % is not what was asked for', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
