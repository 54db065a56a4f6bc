-- At the end of the transaction, what consumed a quote is there and names it: no quote is used up for nothing.
CREATE OR REPLACE FUNCTION check_quote_use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM transfers f WHERE f.id = NEW.object_id AND f.fx_quote_id = NEW.id) THEN
        RAISE EXCEPTION 'quote % is consumed by nothing', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
