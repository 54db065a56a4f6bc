-- Compares an attestation of a payout with the change that two officers confirmed in this transaction, and with a
-- payout that has no other evidence: no claim that it is paid, and an outcome that has been unknown for long enough. Or it
-- denies a claim that a refused payout of a refund was made.
CREATE OR REPLACE FUNCTION check_payout_attestation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM control_changes c WHERE c.id = NEW.id AND c.kind = 'payout_attestation' AND c.applied_in = pg_current_xact_id()
        AND c.proposed_by = NEW.attested_by AND c.decided_by = NEW.agreed_by AND c.change ->> 'object_type' = NEW.object_type
        AND c.change ->> 'object_id' = NEW.object_id::text
        AND (c.change ->> 'attempt_id') IS NOT DISTINCT FROM NEW.attempt_id::text AND c.change ->> 'receipt' = NEW.receipt AND c.change ->> 'note' = NEW.note;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed the attestation of a payout of % %', NEW.object_type, NEW.object_id USING ERRCODE = 'KV006';
    END IF;
    PERFORM FROM order_payouts p WHERE p.id = NEW.object_id FOR SHARE; -- a try that begins at the same moment comes before or after it
    PERFORM FROM refunds f WHERE f.id = NEW.object_id FOR SHARE;
    PERFORM FROM otc_withdrawals w WHERE w.id = NEW.object_id FOR SHARE;
    IF NOT EXISTS (SELECT FROM order_payouts p WHERE NEW.object_type = 'order' AND p.id = NEW.object_id AND p.rail = 'momo'
            UNION ALL SELECT FROM refunds f WHERE NEW.object_type = 'refund' AND f.id = NEW.object_id AND f.rail = 'momo'
            UNION ALL SELECT FROM otc_withdrawals w WHERE NEW.object_type = 'otc_withdrawal' AND w.id = NEW.object_id AND w.method = 'momo') THEN
        RAISE EXCEPTION '% % owes no payout by mobile money', NEW.object_type, NEW.object_id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.attempt_id IS NOT NULL AND NOT EXISTS (SELECT FROM refund_policy y, payment_attempts a
            LEFT JOIN order_payouts p ON p.id = a.order_id LEFT JOIN refunds f ON f.id = a.refund_id LEFT JOIN otc_withdrawals w ON w.id = a.withdrawal_id
            WHERE a.id = NEW.attempt_id AND a.direction = 'payout' AND (a.object_type, a.object_id) = (NEW.object_type, NEW.object_id)
                AND (a.status IN ('unknown', 'accepted') AND coalesce(p.status, f.status, w.status) IN ('processing', 'confirming') AND NOT coalesce(p.claimed, f.claimed, w.claimed)
                    OR a.status IN ('refused', 'failed') AND coalesce(f.claimed, w.claimed))
                AND a.created_at + make_interval(secs => y.unknown_seconds) <= clock_timestamp()) THEN
        RAISE EXCEPTION 'payment attempt % can not be declared not made', NEW.attempt_id USING ERRCODE = 'KV001';
    END IF;
    IF receipt_fault(NEW.object_id, NEW.receipt) <> '' THEN
        RAISE EXCEPTION 'the attestation of a payout of % % names the receipt of another payment', NEW.object_type, NEW.object_id USING ERRCODE = 'unique_violation';
    END IF;
    -- A put-back database may lack the attempt.
    NEW.lost := NEW.receipt <> '' AND payout_is_lost(NEW.object_id);
    IF NEW.receipt <> '' AND NOT NEW.lost AND NOT EXISTS (SELECT FROM payment_attempts a WHERE a.object_id = NEW.object_id AND a.direction = 'payout') THEN
        RAISE EXCEPTION '% % has no payout that the receipt could be of', NEW.object_type, NEW.object_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
