-- A purchase is delivered only when one payment of at least its price was collected for it.
CREATE OR REPLACE FUNCTION check_purchase_paid() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM collections c WHERE c.object_type = 'order' AND c.object_id = NEW.id AND c.kind IN ('exact', 'over') AND c.amount >= NEW.fiat_amount) THEN
        RAISE EXCEPTION 'order % is not paid', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
