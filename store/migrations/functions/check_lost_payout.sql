-- At the end of the transaction: a payout that reserved no float is one that a put-back database lost. Two officers attested it
-- there by its receipt, over the amount that is owed, no attempt of ours may have paid it, and it can't be sent: it has no address
-- for a result and is proven already.
CREATE OR REPLACE FUNCTION check_lost_payout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM payment_attempts a
            JOIN payout_attestations w ON w.lost AND (w.object_type, w.object_id, w.receipt) = (a.object_type, a.object_id, a.receipt)
            JOIN control_changes c ON c.id = w.id AND (c.was ->> 'amount')::numeric = a.moved AND c.was ->> 'currency' = a.asset
            WHERE a.id = NEW.id AND a.status = 'succeeded' AND a.result_class = 'attested' AND a.moved = a.amount
                AND a.submitted_at IS NULL AND a.token_hash IS NULL AND a.status_token_hash IS NULL) THEN
        RAISE EXCEPTION 'payment attempt % reserves no float', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF EXISTS (SELECT FROM payment_attempts a WHERE (a.object_type, a.object_id) = (NEW.object_type, NEW.object_id) AND a.direction = 'payout'
            AND a.id <> NEW.id AND a.status NOT IN ('refused', 'failed')) THEN
        RAISE EXCEPTION '% % has another payout that may have paid it', NEW.object_type, NEW.object_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
