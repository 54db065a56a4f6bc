-- The exception of a statement line has its amount, and the line is aside until it is matched. What came in is booked into suspense with it,
-- and out of it when the line is matched. Anything else about it is an officer's decision, and not about money that went out.
CREATE OR REPLACE FUNCTION check_line_exception() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    l bank_lines;
BEGIN
    SELECT * INTO STRICT l FROM bank_lines WHERE id = NEW.line_id;
    IF NEW.status = 'open' AND (SELECT x.status FROM payment_exceptions x WHERE x.id = NEW.id) <> 'open' THEN
        RETURN NULL; -- it was settled in the same transaction
    END IF;
    IF (l.asset, l.amount) IS DISTINCT FROM (NEW.asset, NEW.amount)
        OR (NEW.status <> 'matched' AND l.status <> 'aside')
        OR (l.side = 'credit' AND NOT line_entry(NEW, 'aside'))
        OR (l.side = 'credit' AND NEW.status = 'matched' AND NOT line_entry(NEW, 'matched'))
        OR (NEW.status = 'matched' AND l.status <> 'matched') THEN
        RAISE EXCEPTION 'exception % does not fit line %', NEW.id, l.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.status NOT IN ('open', 'matched') AND (l.side = 'debit' OR NOT EXISTS (SELECT FROM exception_decisions d WHERE d.exception_id = NEW.id AND d.verdict = NEW.status)
            AND NOT (NEW.status IN ('refunding', 'refunded') AND EXISTS (SELECT FROM refunds f WHERE f.exception_id = NEW.id AND f.rail = 'bank'))) THEN
        RAISE EXCEPTION 'no officer decided about exception %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
