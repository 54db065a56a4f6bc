-- +goose Up
-- Fees of orders.

-- Orders are charged, and quotes of sales with them.
ALTER TABLE fee_profiles DROP CONSTRAINT fee_profiles_orders;
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_sale;
ALTER TABLE fx_quotes ADD CONSTRAINT fx_quotes_sale CHECK (purpose <> 'offramp' OR (side = 'sell' AND (fee_currency = 'KES' OR fee = 0)));

-- The house's fee of an order, in shillings. The vendor of a purchase earns less by it, that of a sale owes more; in a sale at a quote
-- the seller gets less by it.
ALTER TABLE orders DROP CONSTRAINT orders_price;
ALTER TABLE orders
    ADD COLUMN fee_amount         zero_or_more NOT NULL DEFAULT 0 CHECK (scale(fee_amount) <= 2),
    ADD COLUMN pricing_profile_id uuid REFERENCES fee_profiles (id),
    ADD CONSTRAINT orders_price CHECK (fiat_amount = trunc(fiat_amount)
        AND fiat_amount = vendor_amount + rounding_amount + CASE WHEN order_type LIKE 'ON\_RAMP%' THEN fee_amount ELSE -fee_amount END);
CALL same_columns('orders',
    'id, customer_id, vendor_id, offer_id, order_type, order_subtype, network, asset, rate, asked_amount, wallet_id,
     payment_method, payment_phone, payment_reference, opened_by, quote_id, fund_wallet_id, sender_name, sender_country, sender_phone, beneficiary,
     escrow_address, escrow_network, escrow_reference, created_at, expires_at, pricing_profile_id');
CREATE TRIGGER orders_priced BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION check_order_fee();
CREATE TRIGGER orders_repriced BEFORE UPDATE ON orders FOR EACH ROW
    WHEN ((OLD.crypto_amount, OLD.fiat_amount, OLD.vendor_amount, OLD.fee_amount)
        IS DISTINCT FROM (NEW.crypto_amount, NEW.fiat_amount, NEW.vendor_amount, NEW.fee_amount)) EXECUTE FUNCTION check_order_fee();
