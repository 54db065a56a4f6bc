-- No payout begins while the breaker is open, and one at a time after a refusal. Payouts that begin when all is well
-- share a lock, so that they don't wait for each other, and a result that opens the breaker waits for them.
CREATE OR REPLACE FUNCTION check_breaker() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    refusals int;
BEGIN
    SELECT hits INTO refusals FROM momo_breakers WHERE provider = NEW.provider FOR SHARE;
    IF coalesce(refusals, 0) = 0 THEN
        RETURN NEW;
    END IF;
    IF refusals >= 2 THEN
        RAISE EXCEPTION 'payouts of % are suspended', NEW.provider USING ERRCODE = 'KV055';
    END IF;
    PERFORM pg_advisory_xact_lock(x'6d6f6d6f'::int, hashtext(NEW.provider));
    IF EXISTS (SELECT FROM payment_attempts WHERE direction = 'payout' AND provider = NEW.provider AND status IN ('created', 'unknown', 'accepted')) THEN
        RAISE EXCEPTION 'a payout of % is being tried alone', NEW.provider USING ERRCODE = 'KV055';
    END IF;
    RETURN NEW;
END $$;
