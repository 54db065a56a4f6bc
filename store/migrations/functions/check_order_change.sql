-- A deposit reprices a sale once, at the agreed rate, when it is taken. The refund address is set once. The address of
-- bought crypto changes only to the one that two officers agreed on in this transaction, after its payment was given up. A sale
-- whose deposit a reorganisation removed waits as long again as an order does, by the database's clock.
CREATE OR REPLACE FUNCTION check_order_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.waits_until := CASE WHEN OLD.status = 'confirming' AND NEW.status = 'pending' THEN clock_timestamp() + interval '15 minutes' ELSE OLD.waits_until END;
    IF (OLD.crypto_amount, OLD.fiat_amount, OLD.vendor_amount, OLD.rounding_amount, OLD.fee_amount, OLD.hold_id)
            IS DISTINCT FROM (NEW.crypto_amount, NEW.fiat_amount, NEW.vendor_amount, NEW.rounding_amount, NEW.fee_amount, NEW.hold_id)
        AND NOT (OLD.order_type LIKE 'OFF\_RAMP%' AND OLD.status = 'confirming' AND NEW.status = 'processing' AND NEW.hold_id IS NOT NULL
            AND NEW.rounding_amount <= 0 AND NEW.rounding_amount > -1) THEN
        RAISE EXCEPTION 'the price of order % does not change', OLD.id USING ERRCODE = 'KV002';
    END IF;
    IF OLD.wallet_address <> NEW.wallet_address AND NOT (OLD.order_type LIKE 'ON\_RAMP%' AND NEW.status = 'processing'
        AND EXISTS (SELECT FROM control_changes c WHERE c.kind = 'order_address' AND c.applied_in = pg_current_xact_id()
            AND c.change ->> 'order_id' = NEW.id::text AND c.was ->> 'wallet_address' = OLD.wallet_address AND c.change ->> 'wallet_address' = NEW.wallet_address)
        AND NOT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'order' AND p.object_id = NEW.id AND p.status <> 'cancelled')) THEN
        RAISE EXCEPTION 'the address of order % does not change', OLD.id USING ERRCODE = 'KV002';
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
