-- Compares an attestation of a payout with the change that two officers confirmed in this transaction, and with a
-- payout that has no other evidence: no claim that it is paid, and an outcome that has been unknown for long enough. Or it
-- denies a claim that a refused payout of a refund was made.
CREATE OR REPLACE FUNCTION check_payout_attestation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM control_changes c WHERE c.id = NEW.id AND c.kind = 'payout_attestation' AND c.applied_in = pg_current_xact_id()
        AND c.proposed_by = NEW.attested_by AND c.decided_by = NEW.agreed_by AND c.change ->> 'order_id' = NEW.order_id::text
        AND (c.change ->> 'refund_id') IS NOT DISTINCT FROM NEW.refund_id::text
        AND (c.change ->> 'attempt_id') IS NOT DISTINCT FROM NEW.attempt_id::text AND c.change ->> 'receipt' = NEW.receipt AND c.change ->> 'note' = NEW.note;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed the attestation of a payout of order %', NEW.order_id USING ERRCODE = 'KV006';
    END IF;
    IF NOT EXISTS (SELECT FROM order_payouts p WHERE NEW.refund_id IS NULL AND p.id = NEW.order_id AND p.rail = 'momo'
            UNION ALL SELECT FROM refunds f WHERE f.id = NEW.refund_id AND f.order_id = NEW.order_id AND f.rail = 'momo') THEN
        RAISE EXCEPTION 'order % owes no such payout by mobile money', NEW.order_id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.attempt_id IS NOT NULL AND NOT EXISTS (SELECT FROM refund_policy y, payment_attempts a
            LEFT JOIN order_payouts p ON p.id = a.order_id AND a.refund_id IS NULL LEFT JOIN refunds f ON f.id = a.refund_id
            WHERE a.id = NEW.attempt_id AND a.order_id = NEW.order_id AND a.direction = 'payout' AND a.refund_id IS NOT DISTINCT FROM NEW.refund_id
                AND (a.status IN ('unknown', 'accepted') AND coalesce(p.status, f.status) = 'processing' AND NOT coalesce(p.claimed, f.claimed)
                    OR a.status IN ('refused', 'failed') AND f.claimed)
                AND a.created_at + make_interval(secs => y.unknown_seconds) <= clock_timestamp()) THEN
        RAISE EXCEPTION 'payment attempt % can not be declared not made', NEW.attempt_id USING ERRCODE = 'KV001';
    END IF;
    IF receipt_fault(coalesce(NEW.refund_id, NEW.order_id), NEW.receipt) <> '' THEN
        RAISE EXCEPTION 'the attestation of a payout of order % names the receipt of another payment', NEW.order_id USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NEW;
END $$;
