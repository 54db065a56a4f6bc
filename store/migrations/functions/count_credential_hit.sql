-- Two results in a row that refuse our credential open the breaker. A refusal counts once per payout, and a payee
-- refused before later payouts succeeded does not count again.
CREATE OR REPLACE FUNCTION count_credential_hit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    a payment_attempts;
BEGIN
    SELECT * INTO a FROM payment_attempts WHERE id = NEW.attempt_id;
    IF EXISTS (SELECT FROM momo_credential_hits h JOIN payment_attempts b ON b.id = h.attempt_id
        WHERE h.attempt_id <> NEW.attempt_id AND h.at > now() - interval '1 day' AND b.provider = a.provider AND b.phone = a.phone
            AND (h.takings < NEW.takings
                OR h.closings = NEW.closings AND (b.object_type, b.object_id) = (a.object_type, a.object_id))) THEN
        RETURN NULL;
    END IF;
    UPDATE momo_breakers SET hits = hits + 1, code = NEW.code, trial = false, opened_at = CASE WHEN hits + 1 >= 2 THEN coalesce(opened_at, now()) END
    WHERE provider = a.provider;
    RETURN NULL;
END $$;
