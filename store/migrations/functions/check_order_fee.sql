-- The fee of an order is what the closest fees in force when it was opened take: of a purchase's shillings, or of what the crypto of a
-- sale is worth. The vendor's part follows: it earns less by the fee or owes more, except at a quote, where its part is the worth of
-- the crypto and the customer bears the fee.
CREATE OR REPLACE FUNCTION check_order_fee() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sale  boolean := NEW.order_type LIKE 'OFF\_RAMP%';
    worth numeric := trunc(NEW.crypto_amount * NEW.rate, 2);
BEGIN
    IF NEW.fee_amount <> fee_of(NEW.pricing_profile_id, CASE WHEN sale THEN worth ELSE NEW.fiat_amount END, 'KES') THEN
        RAISE EXCEPTION 'order % has another fee than its profile', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.vendor_amount <> (CASE WHEN NEW.quote_id IS NOT NULL THEN worth WHEN sale THEN worth + NEW.fee_amount ELSE worth - NEW.fee_amount END) THEN
        RAISE EXCEPTION 'the vendor of order % has another part than the price leaves', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        RETURN NEW;
    END IF;
    IF NEW.quote_id IS NOT NULL THEN
        IF NOT EXISTS (SELECT FROM fx_quotes q WHERE q.id = NEW.quote_id AND q.fee = NEW.fee_amount
                AND (q.profile_id IS NOT DISTINCT FROM NEW.pricing_profile_id OR NEW.pricing_profile_id IS NULL AND q.fee = 0)) THEN
            RAISE EXCEPTION 'order % has another fee than its quote', NEW.id USING ERRCODE = 'KV002';
        END IF;
    ELSIF NEW.pricing_profile_id IS DISTINCT FROM (CASE WHEN NEW.vendor_id <> platform_treasury() THEN fee_profile_for(
            CASE WHEN sale THEN 'offramp' ELSE 'onramp' END, NEW.vendor_id, NEW.asset, NEW.network, NEW.payment_method, NEW.created_at) END) THEN
        RAISE EXCEPTION 'order % has not the closest fees in force', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
