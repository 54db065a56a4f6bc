-- +goose Up
-- Orders that sell crypto: which kinds of orders there are, what of them may change, and the vendor of those that
-- have no offer.

-- Who sends and who gets the money of a remittance, under the id of the request, until its order is opened: so that
-- no history of a flow holds names and account numbers. The order takes the row away when it takes its content.
CREATE TABLE order_parties (
    id          uuid        PRIMARY KEY,
    owner_id    uuid        NOT NULL REFERENCES users (id),
    sender      jsonb       NOT NULL CHECK (octet_length(sender::text) <= 2000),
    beneficiary jsonb       NOT NULL CHECK (octet_length(beneficiary::text) <= 8000),
    created_at  timestamptz NOT NULL
);
CREATE INDEX order_parties_created_idx ON order_parties (created_at);
CREATE TRIGGER order_parties_same BEFORE UPDATE ON order_parties FOR EACH ROW EXECUTE FUNCTION refuse_change();

ALTER TABLE orders ADD COLUMN asked_amount positive_amount;
ALTER TABLE orders ADD COLUMN opened_by uuid REFERENCES users (id); -- none: the customer itself
ALTER TABLE orders ADD COLUMN quote_id uuid REFERENCES fx_quotes (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE orders ADD COLUMN fund_wallet_id uuid REFERENCES wallets (id);
UPDATE orders SET asked_amount = crypto_amount;
ALTER TABLE orders ALTER COLUMN asked_amount SET NOT NULL;
ALTER TABLE orders ADD CONSTRAINT orders_quote_key UNIQUE (quote_id);

-- +goose StatementBegin
CREATE FUNCTION fill_asked_amount() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.asked_amount := NEW.crypto_amount;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER orders_asked BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION fill_asked_amount();

-- The table of kinds, as in the code. A kind without an offer has the price of a quote.
CREATE TABLE order_kinds (
    order_type    text    NOT NULL,
    order_subtype text    NOT NULL,
    offer         text    NOT NULL CHECK (offer IN ('', 'SELL', 'BUY')),
    quoted        boolean NOT NULL,
    vendor_opens  boolean NOT NULL,
    custodial     boolean NOT NULL,
    parties       boolean NOT NULL,
    bank          boolean NOT NULL,
    PRIMARY KEY (order_type, order_subtype),
    CHECK ((offer = '') = quoted)
);
INSERT INTO order_kinds (order_type, order_subtype, offer, quoted, vendor_opens, custodial, parties, bank) VALUES
    ('ON_RAMP_BUY', 'standard_onramp', 'SELL', false, false, false, false, false),
    ('ON_RAMP_SELL', 'standard_onramp', 'SELL', false, true, false, false, false),
    ('OFF_RAMP_SELL', 'standard_offramp', 'BUY', false, false, false, false, false),
    ('OFF_RAMP_SELL', 'remittance_offramp', 'BUY', false, false, false, true, true),
    ('OFF_RAMP_SELL', 'custodial_remittance_offramp', '', true, false, true, true, true),
    ('OFF_RAMP_SELL', 'treasury_offramp', '', true, false, false, false, true),
    ('OFF_RAMP_BUY', 'standard_offramp', 'BUY', false, true, false, false, false);
CREATE TRIGGER order_kinds_same BEFORE INSERT OR UPDATE OR DELETE ON order_kinds FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The house as a vendor. It is inactive, so that nobody logs in to it, and no vendor opens offers with it.
INSERT INTO users (id, email, phone_number, first_name, last_name, role, is_active, password_hash, created_at, updated_at)
VALUES ('00000000-0000-7000-8000-6b6976756b6f', 'treasury@platform.invalid', '254100000000', 'Platform', 'Treasury', 'vendor', false, '', now(), now());
-- +goose StatementBegin
CREATE FUNCTION platform_treasury() RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT '00000000-0000-7000-8000-6b6976756b6f'::uuid $$;
-- +goose StatementEnd
CREATE TRIGGER users_platform BEFORE UPDATE OR DELETE ON users FOR EACH ROW WHEN (OLD.id = '00000000-0000-7000-8000-6b6976756b6f')
    EXECUTE FUNCTION refuse_change();

-- check_order_kind holds a new order to its kind: its offer, its quote, its vendor, how it is paid and whom it names.
-- +goose StatementBegin
CREATE FUNCTION check_order_kind() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    k order_kinds;
    sale boolean := NEW.order_type LIKE 'OFF\_RAMP%';
BEGIN
    SELECT * INTO k FROM order_kinds WHERE order_type = NEW.order_type AND order_subtype = NEW.order_subtype;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % is of no kind', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF k.offer <> '' AND NOT EXISTS (SELECT FROM offers f WHERE f.id = NEW.offer_id AND f.offer_type = k.offer AND f.vendor_id = NEW.vendor_id
            AND f.network = NEW.network AND f.asset = NEW.asset AND f.wallet_id = NEW.wallet_id) THEN
        RAISE EXCEPTION 'order % is not what its offer says', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF k.offer = '' AND (NEW.offer_id IS NOT NULL OR NEW.vendor_id <> platform_treasury()) THEN
        RAISE EXCEPTION 'order % has an offer or a vendor beside the house', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF k.quoted <> (NEW.quote_id IS NOT NULL) OR k.vendor_opens AND NEW.opened_by IS NULL OR k.custodial AND NEW.fund_wallet_id IS NULL
            OR (NOT sale OR k.vendor_opens) AND NEW.fund_wallet_id IS NOT NULL THEN
        RAISE EXCEPTION 'order % has another quote, opener or source than its kind', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.payment_method <> 'momo' AND NOT (NEW.payment_method = 'bank' AND k.bank) THEN
        RAISE EXCEPTION 'order % can not be paid by %', NEW.id, NEW.payment_method USING ERRCODE = 'KV002';
    END IF;
    IF k.parties <> (NEW.sender_name <> '') OR k.parties <> (NEW.sender_country ~ '^[A-Z]{2}$') OR k.parties <> (NEW.sender_phone ~ '^[1-9][0-9]{6,14}$') THEN
        RAISE EXCEPTION 'order % names another sender than its kind', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF sale AND (NEW.escrow_address = '' OR NEW.escrow_address <> NEW.wallet_address OR NEW.escrow_network <> NEW.network OR NEW.rounding_amount > 0
            OR NEW.rounding_amount <= -1 OR NEW.hold_id IS NULL) OR NOT sale AND (NEW.escrow_address <> '' OR NEW.refund_address <> '' OR NEW.rounding_amount < 0) THEN
        RAISE EXCEPTION 'order % has another address or price than its kind', NEW.id USING ERRCODE = 'KV002';
    END IF;
    -- The coins come back to who sent them. A wallet of the house would swallow them; what is the customer's own is its to name.
    IF NEW.fund_wallet_id IS NOT NULL AND NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.fund_wallet_id AND w.network = NEW.network
            AND w.custody = 'custodial' AND w.type = 'hot' AND coalesce(w.vendor_id, w.owner_id) = NEW.customer_id) THEN
        RAISE EXCEPTION 'order % is paid from a wallet that is not its customer''s', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF k.quoted AND NOT EXISTS (SELECT FROM fx_quotes q WHERE q.id = NEW.quote_id AND q.purpose = 'offramp' AND q.side = 'sell' AND q.asset = NEW.asset
            AND q.amount = NEW.crypto_amount AND q.rate = NEW.rate AND q.fiat_amount = NEW.fiat_amount) THEN
        RAISE EXCEPTION 'order % has another price than its quote', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER orders_kind_fits BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION check_order_kind();

-- The quote of an order is used up by it, and by nothing else, in the transaction that opens the order.
-- +goose StatementBegin
CREATE FUNCTION check_order_quote() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM fx_quotes q WHERE q.id = NEW.quote_id AND q.status = 'consumed' AND q.object_type = 'order' AND q.object_id = NEW.id) THEN
        RAISE EXCEPTION 'the quote of order % is not used up by it', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER orders_quote_used AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.quote_id IS NOT NULL)
    EXECUTE FUNCTION check_order_quote();

-- The shillings of a sale are reserved at its vendor, exactly what the vendor owes for it.
-- +goose StatementBegin
CREATE FUNCTION check_sale_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = NEW.hold_id AND h.status = 'held'
            AND h.amount = NEW.vendor_amount AND h.object_type = 'order' AND h.object_id = NEW.id AND a.code = 'fiat_balance:' || NEW.vendor_id || ':KES') THEN
        RAISE EXCEPTION 'the shillings of order % are not reserved', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER orders_sale_held AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_type IN ('OFF_RAMP_BUY', 'OFF_RAMP_SELL')) EXECUTE FUNCTION check_sale_hold();
CREATE CONSTRAINT TRIGGER orders_sale_held_anew AFTER UPDATE OF hold_id, vendor_amount ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_type IN ('OFF_RAMP_BUY', 'OFF_RAMP_SELL') AND (OLD.hold_id, OLD.vendor_amount) IS DISTINCT FROM (NEW.hold_id, NEW.vendor_amount))
    EXECUTE FUNCTION check_sale_hold();

-- A sale is completed by its payout, of the amount that the order says.
-- +goose StatementBegin
CREATE FUNCTION check_sale_paid() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM order_payouts p WHERE p.id = NEW.id AND p.status = 'completed' AND p.amount = NEW.fiat_amount) THEN
        RAISE EXCEPTION 'order % is not paid out', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER orders_sale_paid AFTER UPDATE OF status ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.order_type IN ('OFF_RAMP_BUY', 'OFF_RAMP_SELL') AND NEW.status = 'completed' AND OLD.status <> 'completed') EXECUTE FUNCTION check_sale_paid();

-- What was agreed stays agreed. What arrives for a sale prices it anew, once, at the rate that was agreed, in the
-- moment in which it is taken. Where the crypto goes back to is said once.
DROP TRIGGER orders_same ON orders;
-- +goose StatementBegin
CREATE FUNCTION check_order_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.id, OLD.customer_id, OLD.vendor_id, OLD.offer_id, OLD.order_type, OLD.order_subtype, OLD.network, OLD.asset, OLD.rate, OLD.asked_amount,
            OLD.wallet_id, OLD.wallet_address, OLD.payment_method, OLD.payment_phone, OLD.opened_by, OLD.quote_id, OLD.fund_wallet_id,
            OLD.sender_name, OLD.sender_country, OLD.sender_phone, OLD.beneficiary, OLD.escrow_address, OLD.escrow_network, OLD.escrow_reference, OLD.created_at)
        IS DISTINCT FROM
       (NEW.id, NEW.customer_id, NEW.vendor_id, NEW.offer_id, NEW.order_type, NEW.order_subtype, NEW.network, NEW.asset, NEW.rate, NEW.asked_amount,
            NEW.wallet_id, NEW.wallet_address, NEW.payment_method, NEW.payment_phone, NEW.opened_by, NEW.quote_id, NEW.fund_wallet_id,
            NEW.sender_name, NEW.sender_country, NEW.sender_phone, NEW.beneficiary, NEW.escrow_address, NEW.escrow_network, NEW.escrow_reference, NEW.created_at) THEN
        RAISE EXCEPTION 'what order % agreed on does not change', OLD.id USING ERRCODE = 'KV002';
    END IF;
    IF (OLD.crypto_amount, OLD.fiat_amount, OLD.vendor_amount, OLD.rounding_amount, OLD.hold_id)
            IS DISTINCT FROM (NEW.crypto_amount, NEW.fiat_amount, NEW.vendor_amount, NEW.rounding_amount, NEW.hold_id)
        AND NOT (OLD.order_type LIKE 'OFF\_RAMP%' AND OLD.status = 'confirming' AND NEW.status = 'processing' AND NEW.hold_id IS NOT NULL
            AND NEW.vendor_amount = trunc(NEW.crypto_amount * NEW.rate, 2) AND NEW.rounding_amount <= 0 AND NEW.rounding_amount > -1) THEN
        RAISE EXCEPTION 'the price of order % does not change', OLD.id USING ERRCODE = 'KV002';
    END IF;
    IF OLD.refund_address <> NEW.refund_address AND (OLD.refund_address <> '' OR OLD.order_type NOT LIKE 'OFF\_RAMP%') THEN
        RAISE EXCEPTION 'where the crypto of order % goes back to does not change', OLD.id USING ERRCODE = 'KV002';
    END IF;
    IF (OLD.deposit_tx_hash, OLD.deposit_confirms, OLD.deposit_at) IS DISTINCT FROM (NEW.deposit_tx_hash, NEW.deposit_confirms, NEW.deposit_at)
        AND (OLD.order_type NOT LIKE 'OFF\_RAMP%' OR OLD.status NOT IN ('pending', 'confirming', 'processing')) THEN
        RAISE EXCEPTION 'the deposit of order % does not change', OLD.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER orders_same BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION check_order_change();
CREATE TRIGGER orders_kept BEFORE DELETE ON orders FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- One order of a vendor's waits for a customer at a time: nobody is flooded with prompts and addresses. A deposit that
-- was seen may be undone, and the order waits again.
CREATE UNIQUE INDEX orders_vendor_opened_key ON orders (vendor_id, customer_id)
    WHERE order_type = 'ON_RAMP_SELL' AND status = 'pending' OR order_type = 'OFF_RAMP_BUY' AND status IN ('pending', 'confirming');

INSERT INTO state_transitions (machine, from_state, to_state) VALUES ('off_ramp_order', 'confirming', 'failed');

-- Sales without an offer have the price of a quote. The house lives by its spread; a fee in crypto would have to be
-- sent beside the amount.
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_purpose_check, DROP CONSTRAINT fx_quotes_object_type_check;
ALTER TABLE fx_quotes ADD CONSTRAINT fx_quotes_purpose CHECK (purpose IN ('transfer', 'offramp')),
    ADD CONSTRAINT fx_quotes_object_type CHECK (object_type IN ('transfer', 'order')),
    ADD CONSTRAINT fx_quotes_sale CHECK (purpose <> 'offramp' OR (side = 'sell' AND fee = 0)),
    ADD CONSTRAINT fx_quotes_purpose_object CHECK (object_type IS NULL OR (object_type = 'order') = (purpose = 'offramp'));
ALTER TABLE fee_profiles DROP CONSTRAINT fee_profiles_scope_check;
ALTER TABLE fee_profiles ADD CONSTRAINT fee_profiles_scope CHECK (scope IN ('transfer', 'offramp')),
    ADD CONSTRAINT fee_profiles_sale CHECK (scope <> 'offramp' OR (fixed = 0 AND basis_points = 0 AND minimum = 0 AND maximum IS NULL));

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT, DELETE, UPDATE (created_at) ON order_parties TO kivuko_app; -- to lock rows; nothing of them changes
        GRANT SELECT ON order_kinds TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
