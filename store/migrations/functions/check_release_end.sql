-- A release leaves the running sums only with an object that ended and moves nothing.
CREATE OR REPLACE FUNCTION check_release_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM transfers f WHERE NEW.purpose = 'transfer' AND f.id = NEW.object_id AND f.status IN ('cancelled', 'rejected', 'blocked', 'failed'))
        AND NOT EXISTS (SELECT FROM chain_payments p WHERE NEW.purpose = 'funding' AND p.purpose = 'funding' AND p.object_id = NEW.object_id AND p.status = 'cancelled') THEN
        RAISE EXCEPTION 'the % of release % may still move money', NEW.purpose, NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
