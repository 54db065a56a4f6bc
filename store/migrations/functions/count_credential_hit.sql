-- Two results in a row that turn our credential down open the breaker.
CREATE OR REPLACE FUNCTION count_credential_hit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    payer text;
BEGIN
    SELECT provider INTO payer FROM payment_attempts WHERE id = NEW.attempt_id AND direction = 'payout';
    IF payer IS NULL THEN
        RAISE EXCEPTION 'attempt % is no payout', NEW.attempt_id USING ERRCODE = 'KV002';
    END IF;
    INSERT INTO momo_breakers AS b (provider, hits, code) VALUES (payer, 1, NEW.code)
    ON CONFLICT (provider) DO UPDATE SET hits = b.hits + 1, code = NEW.code,
        opened_at = CASE WHEN b.hits + 1 >= 2 THEN coalesce(b.opened_at, now()) END;
    RETURN NULL;
END $$;
