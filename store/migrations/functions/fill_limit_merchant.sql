-- Transfers of a merchant and its subvendors count against the merchant.
CREATE OR REPLACE FUNCTION fill_limit_merchant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.merchant_id := (SELECT CASE role WHEN 'vendor' THEN id WHEN 'subvendor' THEN vendor_id END FROM users WHERE id = NEW.user_id);
    RETURN NEW;
END $$;
