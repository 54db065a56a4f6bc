-- Checks a new order against its kind: its offer, its quote, its vendor, its payment method and its parties.
CREATE OR REPLACE FUNCTION check_order_kind() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    k order_kinds;
    sale boolean := NEW.order_type LIKE 'OFF\_RAMP%';
BEGIN
    SELECT * INTO k FROM order_kinds WHERE order_type = NEW.order_type AND order_subtype = NEW.order_subtype;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % has an unknown kind', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF k.offer <> '' AND NOT EXISTS (SELECT FROM offers f WHERE f.id = NEW.offer_id AND f.offer_type = k.offer AND f.vendor_id = NEW.vendor_id
            AND f.network = NEW.network AND f.asset = NEW.asset AND f.wallet_id = NEW.wallet_id) THEN
        RAISE EXCEPTION 'order % does not match its offer', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF k.offer = '' AND (NEW.offer_id IS NOT NULL OR NEW.vendor_id <> platform_treasury()) THEN
        RAISE EXCEPTION 'order % has an offer or a vendor beside the house', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF k.quoted <> (NEW.quote_id IS NOT NULL) OR k.vendor_opens AND NEW.opened_by IS NULL OR k.custodial AND NEW.fund_wallet_id IS NULL
            OR (NOT sale OR k.vendor_opens) AND NEW.fund_wallet_id IS NOT NULL THEN
        RAISE EXCEPTION 'order % has a quote, opener or source that its kind does not allow', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.payment_method <> 'momo' AND NOT (NEW.payment_method = 'bank' AND k.bank) THEN
        RAISE EXCEPTION 'order % can not be paid by %', NEW.id, NEW.payment_method USING ERRCODE = 'KV002';
    END IF;
    IF k.parties <> (NEW.sender_name <> '') OR k.parties <> (NEW.sender_country ~ '^[A-Z]{2}$') OR k.parties <> (NEW.sender_phone ~ '^[1-9][0-9]{6,14}$') THEN
        RAISE EXCEPTION 'order % names a sender that its kind does not allow', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF sale AND (NEW.escrow_address = '' OR NEW.escrow_address <> NEW.wallet_address OR NEW.escrow_network <> NEW.network OR NEW.rounding_amount > 0
            OR NEW.rounding_amount <= -1 OR NEW.hold_id IS NULL) OR NOT sale AND (NEW.escrow_address <> '' OR NEW.refund_address <> '' OR NEW.rounding_amount < 0) THEN
        RAISE EXCEPTION 'order % has an address or a price that its kind does not allow', NEW.id USING ERRCODE = 'KV002';
    END IF;
    -- The coins come back to their sender. A refund to a wallet of the house would be lost; a customer may name any of its
    -- own.
    IF NEW.fund_wallet_id IS NOT NULL AND NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.fund_wallet_id AND w.network = NEW.network
            AND w.custody = 'custodial' AND w.type = 'hot' AND coalesce(w.vendor_id, w.owner_id) = NEW.customer_id) THEN
        RAISE EXCEPTION 'order % is paid from a wallet that is not its customer''s', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF k.quoted AND NOT EXISTS (SELECT FROM fx_quotes q WHERE q.id = NEW.quote_id AND q.owner_id = coalesce(NEW.opened_by, NEW.customer_id)
            AND (q.purpose, q.side) = (CASE WHEN sale THEN 'offramp' ELSE 'onramp' END, CASE WHEN sale THEN 'sell' ELSE 'buy' END) AND q.asset = NEW.asset
            AND coalesce(q.network = NEW.network, true) AND coalesce(q.method = NEW.payment_method, true)
            AND q.amount = NEW.crypto_amount AND q.rate = NEW.rate AND q.fiat_amount = NEW.fiat_amount) THEN
        RAISE EXCEPTION 'order % has another owner or price than its quote', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
