-- +goose Up
-- Crypto that came to an escrow address leaves it once: to who bought it (a sweep) or back to who sent it (a refund).
-- Both consume the one hold that the deposit was given, and no two payments have the same hold.

ALTER TABLE chain_payments
    DROP CONSTRAINT chain_payments_purpose,
    DROP CONSTRAINT chain_payments_numbered,
    DROP CONSTRAINT chain_payments_hold_key,
    ADD CONSTRAINT chain_payments_purpose
        CHECK (purpose IN ('order', 'refund', 'transfer', 'gas', 'nonce_account', 'nonce_advance', 'sweep', 'funding')),
    ADD CONSTRAINT chain_payments_numbered CHECK (n = 1 OR purpose IN ('gas', 'nonce_account', 'refund'));
-- What was given up leaves its hold to another one: crypto that can't go to one address goes to another.
CREATE UNIQUE INDEX chain_payments_hold_key ON chain_payments (hold_id) WHERE status <> 'cancelled';

-- A payment that is given up frees its hold, so that nothing of it may still move money.
-- +goose StatementBegin
CREATE FUNCTION refuse_end_of_live() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_attempts WHERE payment_id = NEW.id AND status IN ('signed', 'broadcast', 'included', 'replaced', 'succeeded');
    IF FOUND THEN
        RAISE EXCEPTION 'payment % has a transaction that may move money', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_payments_dead BEFORE UPDATE ON chain_payments FOR EACH ROW
    WHEN (OLD.status <> 'cancelled' AND NEW.status = 'cancelled') EXECUTE FUNCTION refuse_end_of_live();

-- The payment of an order delivers what was bought. Of an order that sells crypto nothing is delivered.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION check_payment_ends() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.network = NEW.network AND w.address = NEW.from_address) THEN
        RAISE EXCEPTION 'chain payment % has another sender than its wallet', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.fee_wallet_id IS NOT NULL AND NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.fee_wallet_id AND w.network = NEW.network
            AND w.address = NEW.fee_payer AND w.owner_id IS NULL AND w.purpose = 'gas' AND w.type = 'hot') THEN
        RAISE EXCEPTION 'chain payment % has its fee paid by no gas wallet of the house', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.purpose = 'order' AND NOT EXISTS (SELECT FROM orders o WHERE o.id = NEW.object_id AND o.status = 'processing'
            AND o.order_type IN ('ON_RAMP_BUY', 'ON_RAMP_SELL')
            AND o.network = NEW.network AND o.asset = NEW.asset AND o.crypto_amount = NEW.amount AND o.wallet_id = NEW.wallet_id
            AND o.wallet_address = NEW.to_address AND o.hold_id = NEW.hold_id) THEN
        RAISE EXCEPTION 'chain payment % is not what its order says', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.purpose = 'gas' AND NOT EXISTS (SELECT FROM chain_payments p JOIN wallets w ON w.id = NEW.wallet_id WHERE p.id = NEW.object_id
            AND p.status = 'approved' AND p.purpose <> 'gas' AND p.network = NEW.network AND p.from_address = NEW.to_address
            AND p.wallet_id <> NEW.wallet_id AND w.owner_id IS NULL AND w.purpose = 'gas' AND w.type = 'hot'
            AND NEW.asset = CASE NEW.network WHEN 'ethereum' THEN 'ETH' WHEN 'tron' THEN 'TRX' END) THEN
        RAISE EXCEPTION 'chain payment % is no gas for another one', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- reserved_for tells whether the money of a payment is held for an object, all of it, in the wallet that it leaves.
CREATE FUNCTION reserved_for(p chain_payments, object_type text, object_id uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id
        WHERE h.id = $1.hold_id AND h.status = 'held' AND h.amount = $1.amount AND h.object_type = $2 AND h.object_id = $3
            AND a.kind = 'wallet_balance' AND a.owner_id = $1.wallet_id AND a.asset = $1.asset)
$$;

-- deposit_of is the movement on a chain that an exception is about.
CREATE FUNCTION deposit_of(receipt text) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT d.id FROM chain_deposits d WHERE receipt ~ '^[a-z]+:[^:]+:[0-9]{1,18}$' AND d.network = split_part(receipt, ':', 1)
        AND d.tx_id = split_part(receipt, ':', 2) AND d.event_index = split_part(receipt, ':', 3)::bigint
$$;

-- What of an order's deposit goes to who bought it goes when the order is paid out, from its escrow address to its
-- wallet and as much as was taken. An order that failed is paid out when a payout that was taken for refused proves
-- true; where its crypto is back already, nothing is held any more.
-- +goose StatementBegin
CREATE FUNCTION order_sweep_fault(p chain_payments) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    o orders;
BEGIN
    SELECT * INTO o FROM orders WHERE id = p.object_id FOR SHARE;
    IF o.order_type NOT IN ('OFF_RAMP_BUY', 'OFF_RAMP_SELL') OR (o.network, o.asset, o.escrow_address) IS DISTINCT FROM (p.network, p.asset, p.from_address) THEN
        RETURN 'it does not leave the escrow address of its order';
    END IF;
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.id = o.wallet_id AND w.network = p.network AND w.address = p.to_address) THEN
        RETURN 'it does not go to who bought the crypto';
    END IF;
    IF NOT reserved_for(p, 'order', o.id) OR NOT EXISTS (SELECT FROM escrow_claims c WHERE c.order_id = o.id AND c.asset = p.asset
            AND c.amount = p.amount AND c.kind IN ('exact', 'repriced')) THEN
        RETURN 'it is not what the order was paid with';
    END IF;
    IF o.status IN ('completed', 'failed') AND EXISTS (SELECT FROM order_payouts y WHERE y.id = o.id AND y.status = 'completed') THEN
        RETURN '';
    END IF;
    RETURN 'its order is not paid out';
END $$;
-- +goose StatementEnd

-- Crypto that the house keeps goes from the escrow address where it lies to the treasury.
-- +goose StatementBegin
CREATE FUNCTION kept_sweep_fault(p chain_payments) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x payment_exceptions;
BEGIN
    SELECT * INTO x FROM payment_exceptions WHERE id = p.object_id FOR SHARE;
    IF x.status IS NULL OR x.status NOT IN ('accepted', 'written_off') OR x.asset <> p.asset OR x.amount <> p.amount OR NOT reserved_for(p, 'payment_exception', x.id) THEN
        RETURN 'it is no money that the house keeps';
    END IF;
    IF NOT EXISTS (SELECT FROM chain_deposits d JOIN wallets w ON w.id = d.wallet_id WHERE d.id = deposit_of(x.receipt) AND d.status = 'final'
            AND d.wallet_id = p.wallet_id AND d.asset = p.asset AND d.amount = p.amount AND w.owner_id IS NULL AND w.purpose = 'escrow') THEN
        RETURN 'it does not leave the escrow address where the money lies';
    END IF;
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.network = p.network AND w.address = p.to_address AND w.owner_id IS NULL AND w.purpose = 'treasury') THEN
        RETURN 'it does not go to the treasury';
    END IF;
    RETURN '';
END $$;
-- +goose StatementEnd

-- An order whose customer pays out of a wallet in our custody is funded from there, to its escrow address.
-- +goose StatementBegin
CREATE FUNCTION funding_fault(p chain_payments) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    o orders;
BEGIN
    SELECT * INTO o FROM orders WHERE id = p.object_id FOR SHARE;
    IF NOT FOUND OR o.status NOT IN ('pending', 'confirming') OR o.order_type <> 'OFF_RAMP_SELL'
        OR (o.network, o.asset, o.crypto_amount, o.fund_wallet_id, o.escrow_address) IS DISTINCT FROM (p.network, p.asset, p.amount, p.wallet_id, p.to_address) THEN
        RETURN 'it is not what its order says';
    END IF;
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.id = p.wallet_id AND coalesce(w.vendor_id, w.owner_id) = o.customer_id AND w.type = 'hot') THEN
        RETURN 'it does not leave a wallet of the customer';
    END IF;
    IF NOT reserved_for(p, 'order', o.id) THEN
        RETURN 'its money is not held';
    END IF;
    RETURN '';
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION check_escrow_payment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    p     chain_payments;
    fault text;
BEGIN
    SELECT * INTO p FROM chain_payments WHERE id = NEW.id;
    IF p.status NOT IN ('approved', 'signed') OR EXISTS (SELECT FROM chain_attempts WHERE payment_id = p.id AND adopted AND status = 'included') THEN
        RETURN NULL; -- it was given up at once, or is paid already
    END IF;
    CASE p.purpose
        WHEN 'funding' THEN fault := funding_fault(p);
        WHEN 'refund' THEN fault := refund_fault(p);
        ELSE
            PERFORM FROM orders WHERE id = p.object_id;
            IF FOUND THEN
                fault := order_sweep_fault(p);
            ELSE
                fault := kept_sweep_fault(p);
            END IF;
    END CASE;
    IF fault <> '' THEN
        RAISE EXCEPTION 'chain payment % is refused: %', p.id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- Once when it is approved, at the end of the transaction because its hold may be written last, and again whenever it
-- is signed: what was true may not be so any more.
CREATE CONSTRAINT TRIGGER chain_payments_escrow AFTER INSERT ON chain_payments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.purpose IN ('sweep', 'funding', 'refund')) EXECUTE FUNCTION check_escrow_payment();
CREATE TRIGGER chain_payments_escrow_signed AFTER UPDATE ON chain_payments FOR EACH ROW
    WHEN (NEW.purpose IN ('sweep', 'funding', 'refund') AND OLD.status <> NEW.status AND NEW.status = 'signed') EXECUTE FUNCTION check_escrow_payment();

-- What networks take for the crypto of an order counts at the order's customer and vendor. What the house keeps, and
-- what is returned of nobody's order, it pays for itself.
CREATE OR REPLACE FUNCTION fee_causer(purpose text, object_id uuid) RETURNS TABLE (user_id uuid, vendor_id uuid) LANGUAGE sql STABLE AS $$
    SELECT o.customer_id, o.vendor_id FROM orders o WHERE $1 IN ('order', 'sweep', 'funding') AND o.id = $2
    UNION ALL SELECT o.customer_id, o.vendor_id FROM refunds f JOIN orders o ON o.id = f.order_id WHERE $1 = 'refund' AND f.id = $2
    UNION ALL SELECT t.requested_by, t.vendor_id FROM transfers t WHERE $1 = 'transfer' AND t.id = $2
    UNION ALL SELECT f.user_id, f.vendor_id FROM network_fees f WHERE $1 = 'gas' AND f.payment_id = $2
$$;
