-- Counts the outcomes of payouts. Any other result of a processed payout proves the credential, on trial only that of
-- a payout which began since; a refusal at the gateway for another reason proves nothing.
CREATE OR REPLACE FUNCTION count_credential() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.status IN ('refused', 'failed') AND NEW.result_class IN ('credential', 'account') THEN
        INSERT INTO momo_credential_hits (attempt_id, code) VALUES (NEW.id, NEW.result_code) ON CONFLICT DO NOTHING;
    ELSIF NEW.status IN ('succeeded', 'failed') THEN
        UPDATE momo_breakers SET hits = 0, trial = false, takings = takings + 1
        WHERE provider = NEW.provider AND hits = 1 AND (NOT trial OR NEW.created_at >= closed_at);
    END IF;
    RETURN NULL;
END $$;
