-- At the end of the transaction, a used quote has an object that names it.
CREATE OR REPLACE FUNCTION check_quote_use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM transfers f WHERE NEW.object_type = 'transfer' AND f.id = NEW.object_id AND f.fx_quote_id = NEW.id)
        AND NOT EXISTS (SELECT FROM orders o WHERE NEW.object_type = 'order' AND o.id = NEW.object_id AND o.quote_id = NEW.id)
        AND NOT EXISTS (SELECT FROM otc_deposits d WHERE NEW.object_type = 'otc_deposit' AND d.id = NEW.object_id AND d.fx_quote_id = NEW.id)
        AND NOT EXISTS (SELECT FROM otc_withdrawals w WHERE NEW.object_type = 'otc_withdrawal' AND w.id = NEW.object_id AND w.fx_quote_id = NEW.id) THEN
        RAISE EXCEPTION 'quote % has no object that uses it', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
