-- An order is what its intent says: who asks, for whom, how much of what and against which offer, and where its money goes.
CREATE OR REPLACE FUNCTION check_asked_order() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sale boolean := NEW.order_type LIKE 'OFF\_RAMP%';
    said jsonb := intent_terms(NEW.intent_id, CASE WHEN sale THEN 'sale.open' ELSE 'purchase.open' END, NEW.id, coalesce(NEW.opened_by, NEW.customer_id));
    fiat numeric := split_part(said ->> 'fiat', ' ', 1)::numeric;
BEGIN
    IF NOT coalesce(said ->> 'customer_id' = NEW.customer_id::text
            AND coalesce(said ->> 'type', 'ON_RAMP_BUY') = NEW.order_type
            AND (said ->> 'offer_id', said ->> 'quote_id', said ->> 'fund_wallet_id')
                IS NOT DISTINCT FROM (NEW.offer_id::text, NEW.quote_id::text, NEW.fund_wallet_id::text)
            AND CASE
                WHEN said ? 'crypto' THEN split_part(said ->> 'crypto', ' ', 1)::numeric = NEW.crypto_amount AND split_part(said ->> 'crypto', ' ', 2) = NEW.asset
                WHEN sale THEN NEW.fiat_amount >= fiat
                ELSE NEW.fiat_amount = fiat
            END
            AND coalesce((said ->> 'expected_rate')::numeric = NEW.rate, true)
            AND coalesce(said ->> 'phone', NEW.payment_phone) = NEW.payment_phone
            AND coalesce(said ->> 'refund_address', NEW.refund_address) = NEW.refund_address
            AND (sale OR coalesce(said ->> 'wallet_address', NEW.wallet_address) = NEW.wallet_address), false) THEN
        RAISE EXCEPTION 'order % is not what was asked for', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
