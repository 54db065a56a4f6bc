-- A deposit reprices a sale once, at the agreed rate, when it is taken. The refund address is set once.
CREATE OR REPLACE FUNCTION check_order_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.crypto_amount, OLD.fiat_amount, OLD.vendor_amount, OLD.rounding_amount, OLD.hold_id)
            IS DISTINCT FROM (NEW.crypto_amount, NEW.fiat_amount, NEW.vendor_amount, NEW.rounding_amount, NEW.hold_id)
        AND NOT (OLD.order_type LIKE 'OFF\_RAMP%' AND OLD.status = 'confirming' AND NEW.status = 'processing' AND NEW.hold_id IS NOT NULL
            AND NEW.vendor_amount = trunc(NEW.crypto_amount * NEW.rate, 2) AND NEW.rounding_amount <= 0 AND NEW.rounding_amount > -1) THEN
        RAISE EXCEPTION 'the price of order % does not change', OLD.id USING ERRCODE = 'KV002';
    END IF;
    IF OLD.refund_address <> NEW.refund_address AND (OLD.refund_address <> '' OR OLD.order_type NOT LIKE 'OFF\_RAMP%') THEN
        RAISE EXCEPTION 'the refund address of order % does not change', OLD.id USING ERRCODE = 'KV002';
    END IF;
    IF (OLD.deposit_tx_hash, OLD.deposit_confirms, OLD.deposit_at) IS DISTINCT FROM (NEW.deposit_tx_hash, NEW.deposit_confirms, NEW.deposit_at)
        AND (OLD.order_type NOT LIKE 'OFF\_RAMP%' OR OLD.status NOT IN ('pending', 'confirming', 'processing')) THEN
        RAISE EXCEPTION 'the deposit of order % does not change', OLD.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
