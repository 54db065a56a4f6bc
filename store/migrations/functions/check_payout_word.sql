-- Compares an attestation of a payout with the change that two persons agreed to in this transaction, and with a payout
-- of which nothing else is known: there is no claim that it is paid, its outcome is open, and has been for long enough.
CREATE OR REPLACE FUNCTION check_payout_word() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM control_changes c WHERE c.id = NEW.id AND c.kind = 'payout_word' AND c.applied_in = pg_current_xact_id()
        AND c.proposed_by = NEW.said_by AND c.decided_by = NEW.agreed_by AND c.change ->> 'order_id' = NEW.order_id::text
        AND (c.change ->> 'attempt_id') IS NOT DISTINCT FROM NEW.attempt_id::text AND c.change ->> 'receipt' = NEW.receipt AND c.change ->> 'note' = NEW.note;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nobody confirmed what is said of the payout of order %', NEW.order_id USING ERRCODE = 'KV006';
    END IF;
    IF NEW.attempt_id IS NOT NULL AND NOT EXISTS (SELECT FROM payment_attempts a JOIN order_payouts p ON p.id = a.order_id, refund_policy y
            WHERE a.id = NEW.attempt_id AND a.order_id = NEW.order_id AND a.direction = 'payout' AND a.refund_id IS NULL
                AND a.status IN ('unknown', 'accepted') AND p.status = 'processing' AND p.rail = 'momo' AND NOT p.claimed
                AND a.created_at + make_interval(secs => y.unknown_seconds) <= clock_timestamp()) THEN
        RAISE EXCEPTION 'payment attempt % can not be declared not made', NEW.attempt_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
