-- Orders a refusal among closings and accepted payouts. It locks the breaker, so that the following count sees the
-- same state.
CREATE OR REPLACE FUNCTION place_credential_hit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    payer text;
BEGIN
    SELECT provider INTO payer FROM payment_attempts WHERE id = NEW.attempt_id AND direction = 'payout';
    IF payer IS NULL THEN
        RAISE EXCEPTION 'attempt % is not a payout', NEW.attempt_id USING ERRCODE = 'KV002';
    END IF;
    INSERT INTO momo_breakers (provider, hits) VALUES (payer, 0) ON CONFLICT DO NOTHING;
    SELECT closings, takings INTO NEW.closings, NEW.takings FROM momo_breakers WHERE provider = payer FOR UPDATE;
    RETURN NEW;
END $$;
