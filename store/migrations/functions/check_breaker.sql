-- Begins no payout while the breaker is open, and one at a time on trial: the next one begins when the previous one is
-- settled or has been open for two minutes. Payouts with a closed breaker share a lock, so that they don't wait for
-- each other, and a result that opens the breaker waits for them.
CREATE OR REPLACE FUNCTION check_breaker() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    b momo_breakers;
BEGIN
    SELECT * INTO b FROM momo_breakers WHERE provider = NEW.provider FOR SHARE;
    IF b.opened_at IS NOT NULL THEN
        RAISE EXCEPTION 'payouts of % are suspended', NEW.provider USING ERRCODE = 'KV055';
    END IF;
    IF NOT coalesce(b.trial, false) THEN
        RETURN NEW;
    END IF;
    PERFORM pg_advisory_xact_lock(x'6d6f6d6f'::int, hashtext(NEW.provider));
    IF EXISTS (SELECT FROM payment_attempts WHERE direction = 'payout' AND provider = NEW.provider AND status IN ('created', 'unknown', 'accepted')
            AND created_at >= b.closed_at AND created_at > NEW.created_at - interval '2 minutes') THEN
        RAISE EXCEPTION 'another payout of % is on trial', NEW.provider USING ERRCODE = 'KV055';
    END IF;
    RETURN NEW;
END $$;
