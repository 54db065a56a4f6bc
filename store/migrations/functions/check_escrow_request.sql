-- The pool is extended up to its limit. The policy is locked, so that two concurrent requests can't both take the last
-- place.
CREATE OR REPLACE FUNCTION check_escrow_request() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    most int;
BEGIN
    SELECT p.most INTO most FROM escrow_policy p WHERE p.network = NEW.network FOR NO KEY UPDATE;
    IF most IS NULL OR most <= (SELECT count(*) FROM escrow_addresses WHERE network = NEW.network AND status <> 'disabled')
            + (SELECT count(*) FROM escrow_requests WHERE network = NEW.network AND made_at IS NULL) THEN
        RAISE EXCEPTION 'the escrow pool of % has reached its limit', NEW.network USING ERRCODE = 'KV002';
    END IF;
    NEW.made_at := NULL;
    RETURN NEW;
END $$;
