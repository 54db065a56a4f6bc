-- Subtracts a new refund from its collection's remainder. The check on collections refuses an excess.
CREATE OR REPLACE FUNCTION count_refund() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE collections SET refunded = refunded + NEW.amount
        WHERE receipt = NEW.collection AND object_type = 'order' AND object_id = NEW.order_id AND asset = NEW.asset;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'refund % names a collection of another order or asset', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
