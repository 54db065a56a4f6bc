-- +goose Up
-- Whoever is paid outside of our custody was screened before, whatever the payment is for; and nothing is sold that
-- only a person's signature could deliver.

-- What screeners say of the recipient of a transfer is about the transfer; of every other chain payment it is about
-- the payment itself, and asked for just before it is signed.
ALTER TABLE screenings ALTER COLUMN transfer_id DROP NOT NULL;
ALTER TABLE screenings ADD COLUMN payment_id uuid REFERENCES chain_payments (id);
ALTER TABLE screenings ADD CONSTRAINT screenings_object CHECK (num_nonnulls(transfer_id, payment_id) = 1);
CREATE INDEX screenings_payment_idx ON screenings (payment_id, at) WHERE payment_id IS NOT NULL;

-- recipient_cleared tells whether the last word about who gets a payment is that it may be paid. Who has a wallet in
-- our custody is known to us and needs none.
CREATE FUNCTION recipient_cleared(p chain_payments) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM wallets w WHERE w.network = p.network AND w.address = p.to_address)
        OR coalesce((SELECT s.verdict = 'clear' FROM screenings s WHERE s.payment_id = p.id OR (p.purpose = 'transfer' AND s.transfer_id = p.object_id)
            ORDER BY s.at DESC, s.id DESC LIMIT 1), false)
$$;

-- +goose StatementBegin
CREATE FUNCTION check_recipient() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT recipient_cleared(NEW) THEN
        RAISE EXCEPTION 'the recipient of payment % is not cleared by a screening', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_payments_screened BEFORE UPDATE ON chain_payments FOR EACH ROW WHEN (OLD.status = 'approved' AND NEW.status = 'signed')
    EXECUTE FUNCTION check_recipient();

-- The key of a cold wallet never signs by itself, so an order that is paid out of one could not be delivered.
-- Offers that are active already may be paused and closed; nothing is bought from them.
-- +goose StatementBegin
CREATE FUNCTION check_selling_wallet() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.type = 'hot') THEN
        RAISE EXCEPTION '% % sells from a wallet that is not hot', TG_TABLE_NAME, NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER offers_sell_hot BEFORE UPDATE ON offers FOR EACH ROW
    WHEN (NEW.offer_type = 'SELL' AND NEW.status = 'active' AND OLD.status IN ('draft', 'paused')) EXECUTE FUNCTION check_selling_wallet();
CREATE TRIGGER orders_sell_hot BEFORE INSERT ON orders FOR EACH ROW WHEN (NEW.order_type IN ('ON_RAMP_BUY', 'ON_RAMP_SELL'))
    EXECUTE FUNCTION check_selling_wallet();
