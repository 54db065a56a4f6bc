-- A sale is completed by its payout of the order's amount.
CREATE OR REPLACE FUNCTION check_sale_paid() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM order_payouts p WHERE p.id = NEW.id AND p.status = 'completed' AND p.amount = NEW.fiat_amount) THEN
        RAISE EXCEPTION 'order % is not paid out', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
