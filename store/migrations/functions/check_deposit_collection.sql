-- A collection begins only for a deposit that waits for mobile money, of the amount that its merchant announced, under its reference. Whom
-- we prompt is the number that the merchant named; who pays by hand may be anybody, and is expected to be the merchant.
CREATE OR REPLACE FUNCTION check_deposit_collection() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM otc_deposits d JOIN users u ON u.id = d.merchant_id WHERE d.id = NEW.object_id AND d.submitted_at IS NOT NULL AND d.received_at IS NULL
        AND d.status IN ('pending', 'assigned', 'claimed', 'info_required', 'on_hold') AND NEW.asset = 'KES' AND d.fiat_amount = NEW.amount AND d.payment_reference = NEW.reference
        AND CASE d.method WHEN 'momo' THEN NEW.phone = d.phone WHEN 'c2b' THEN NEW.phone IN ('', regexp_replace(u.phone_number, '^\+', '')) AND NEW.token_hash IS NULL END FOR SHARE OF d;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'payment attempt % does not collect what its deposit wants now', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
