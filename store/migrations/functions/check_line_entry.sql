-- An entry of the ledger about a statement line is that of its exception.
CREATE OR REPLACE FUNCTION check_line_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM payment_exceptions x WHERE x.id = NEW.object_id
            AND CASE NEW.kind WHEN 'bank_line.aside' THEN line_entry(x, 'aside') WHEN 'bank_line.matched' THEN x.status = 'matched' AND line_entry(x, 'matched') END
            AND NEW.key = 'exception:' || x.id || ':' || substr(NEW.kind, 11)) THEN
        RAISE EXCEPTION 'entry % is about no statement line', NEW.key USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
