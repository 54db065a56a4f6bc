-- An order uses up its quote in the transaction that opens the order, and nothing else does: in time by the database's clock too, but for
-- what clocks differ and a commit takes. A purchase holds its price for the quarter of an hour in which it may be paid, and no longer.
CREATE OR REPLACE FUNCTION check_order_quote() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.order_type LIKE 'ON\_RAMP%' AND NEW.expires_at > clock_timestamp() + interval '16 minutes' THEN
        RAISE EXCEPTION 'order % holds its price for too long', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NOT EXISTS (SELECT FROM fx_quotes q WHERE q.id = NEW.quote_id AND q.status = 'consumed' AND q.object_type = 'order' AND q.object_id = NEW.id
            AND q.expires_at > clock_timestamp() - interval '1 minute') THEN
        RAISE EXCEPTION 'the quote of order % is not consumed by it in time', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
