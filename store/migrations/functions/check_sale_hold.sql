-- The shillings of a sale are reserved in its vendor's account, exactly the amount owed.
CREATE OR REPLACE FUNCTION check_sale_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = NEW.hold_id AND h.status = 'held'
            AND h.amount = NEW.vendor_amount AND h.object_type = 'order' AND h.object_id = NEW.id AND a.code = 'fiat_balance:' || NEW.vendor_id || ':KES') THEN
        RAISE EXCEPTION 'the shillings of order % are not reserved', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
