-- Compares a claim with its source: a final movement to the address that the order borrows, or a payment of ours that
-- funded the order in full. Another amount decides an order when that has expired, or by the word of its seller. The claim's own
-- time can't make it expired.
CREATE OR REPLACE FUNCTION check_claim() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    l escrow_leases;
    o orders;
BEGIN
    SELECT * INTO l FROM escrow_leases WHERE order_id = NEW.order_id AND wallet_id = NEW.wallet_id AND ended_at IS NULL FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % does not borrow escrow address %', NEW.order_id, NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    SELECT * INTO o FROM orders WHERE id = NEW.order_id;
    IF NEW.deposit_id IS NOT NULL THEN
        PERFORM FROM chain_deposits d WHERE d.id = NEW.deposit_id AND d.status = 'final' AND d.kind = 'awaited' AND d.wallet_id = NEW.wallet_id
            AND d.asset = NEW.asset AND d.amount = NEW.amount AND d.final_at >= l.leased_at;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'movement % does not match the claim of order %', NEW.deposit_id, NEW.order_id USING ERRCODE = 'KV002';
        END IF;
    ELSE
        PERFORM FROM chain_payments p JOIN wallets w ON w.id = NEW.wallet_id WHERE p.id = NEW.payment_id AND p.purpose = 'funding' AND p.object_id = NEW.order_id
            AND p.status = 'completed' AND p.network = w.network AND p.to_address = w.address AND p.asset = NEW.asset AND p.amount = NEW.amount;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'payment % did not fund order %', NEW.payment_id, NEW.order_id USING ERRCODE = 'KV002';
        END IF;
    END IF;
    IF (NEW.kind = 'wrong_asset') <> (NEW.asset <> o.asset) THEN
        RAISE EXCEPTION 'order % is for %', NEW.order_id, o.asset USING ERRCODE = 'KV002';
    END IF;
    IF NEW.hold_id IS NOT NULL AND o.status NOT IN ('pending', 'confirming', 'processing', 'failed') THEN
        RAISE EXCEPTION 'order % is % and can''t take a deposit', NEW.order_id, o.status USING ERRCODE = 'KV001';
    END IF;
    IF NEW.kind = 'exact' AND NEW.amount <> o.asked_amount THEN
        RAISE EXCEPTION 'order % asks for another amount', NEW.order_id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.kind IN ('repriced', 'under', 'over') AND least(NEW.created_at, clock_timestamp()) < greatest(o.expires_at, o.waits_until) AND NOT EXISTS (SELECT FROM intents i JOIN users u ON u.id = i.user_id
            WHERE i.object_id = o.id AND i.kind = CASE NEW.kind WHEN 'repriced' THEN 'sale.accept' ELSE 'sale.return' END AND i.used_at IS NOT NULL
                AND o.customer_id IN (u.id, u.vendor_id) AND convert_from(i.statement, 'UTF8')::jsonb -> 'terms' ->> 'deposit_id' = NEW.deposit_id::text) THEN
        RAISE EXCEPTION 'movement % is not what order % asks for, and its seller did not decide about it', NEW.deposit_id, o.id USING ERRCODE = 'KV002';
    END IF;
    IF (NEW.taken, NEW.refunded, NEW.kept) <> (0, 0, 0) THEN
        RAISE EXCEPTION 'a new claim must be unspent' USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
