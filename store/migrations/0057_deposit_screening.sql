-- +goose Up
-- Whose crypto is sold was looked at before anybody is paid for it.

-- What screeners say is about a transfer, a payment, or a deposit for an order.
ALTER TABLE screenings ADD COLUMN deposit_id uuid REFERENCES chain_deposits (id);
ALTER TABLE screenings DROP CONSTRAINT screenings_object;
ALTER TABLE screenings ADD CONSTRAINT screenings_object CHECK (num_nonnulls(transfer_id, payment_id, deposit_id) = 1);
CREATE INDEX screenings_deposit_idx ON screenings (deposit_id, at) WHERE deposit_id IS NOT NULL;

-- deposit_cleared tells whether the last word about who sent a deposit is that it may be taken. What came out of our own
-- custody needs none.
CREATE FUNCTION deposit_cleared(d chain_deposits) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM wallets w WHERE w.network = d.network AND w.address = d.from_address)
        OR coalesce((SELECT s.verdict = 'clear' FROM screenings s WHERE s.deposit_id = d.id ORDER BY s.at DESC, s.id DESC LIMIT 1), false)
$$;

-- +goose StatementBegin
CREATE FUNCTION check_sold_crypto() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM escrow_claims c JOIN chain_deposits d ON d.id = c.deposit_id
    WHERE c.order_id = NEW.id AND c.kind IN ('exact', 'repriced') AND NOT deposit_cleared(d);
    IF FOUND THEN
        RAISE EXCEPTION 'who sent the crypto of order % is not cleared by a screening', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER order_payouts_screened BEFORE UPDATE ON order_payouts FOR EACH ROW WHEN (OLD.status = 'pending' AND NEW.status = 'processing')
    EXECUTE FUNCTION check_sold_crypto();
