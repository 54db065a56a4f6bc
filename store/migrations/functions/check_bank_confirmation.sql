-- Checks an officer's right to confirm, and that an order, a withdrawal or a refund has one reference and a reference pays one of them. The lock
-- is on the reference: two with it must not both pass at the same moment. Who asked for a refund does not say that it was paid. What an officer
-- said of a withdrawal or a refund, only that officer takes back, by saying something else or as one of the two who end it, until the officer
-- may not confirm any more.
CREATE OR REPLACE FUNCTION check_bank_confirmation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    about uuid := coalesce(NEW.order_id, NEW.withdrawal_id, NEW.refund_id);
    said  jsonb;
BEGIN
    IF NEW.withdrawal_id IS NOT NULL THEN
        PERFORM FROM otc_withdrawals w WHERE w.id = NEW.withdrawal_id AND w.method = 'bank' AND w.status = 'confirming' FOR UPDATE;
    ELSIF NEW.refund_id IS NOT NULL THEN
        PERFORM FROM refunds f WHERE f.id = NEW.refund_id AND f.rail = 'bank' AND f.status = 'processing' FOR UPDATE;
    ELSE
        PERFORM FROM order_payouts p JOIN orders o ON o.id = p.id
            WHERE p.id = NEW.order_id AND p.rail = 'bank' AND p.status = 'processing' AND o.status = 'processing' FOR UPDATE OF p;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% does not wait for a payment by bank', about USING ERRCODE = 'KV001';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        PERFORM FROM users u WHERE u.id = NEW.officer_id AND NOT (u.is_active AND u.role IN ('admin', 'treasury')) FOR SHARE;
        IF NOT FOUND AND NEW.order_id IS NULL
            AND intent_asker(about, CASE WHEN NEW.refund_id IS NULL THEN 'withdrawal.confirm' ELSE 'refund.confirm' END) IS DISTINCT FROM NEW.officer_id
            AND NOT EXISTS (SELECT FROM control_changes c WHERE c.kind IN ('withdrawal_failure', 'bank_refund_failure') AND c.applied_in = pg_current_xact_id()
                AND about::text IN (c.change ->> 'withdrawal_id', c.change ->> 'refund_id') AND NEW.officer_id IN (c.proposed_by, c.decided_by)) THEN
            RAISE EXCEPTION 'a confirmation of % is taken back by nobody who may', about USING ERRCODE = 'KV006';
        END IF;
        RETURN NEW;
    END IF;
    PERFORM FROM users u LEFT JOIN orders o ON o.id = NEW.order_id LEFT JOIN otc_withdrawals w ON w.id = NEW.withdrawal_id LEFT JOIN refunds f ON f.id = NEW.refund_id
        WHERE u.id = NEW.officer_id AND u.is_active AND u.role IN ('admin', 'treasury') AND u.id IS DISTINCT FROM o.customer_id
            AND u.id IS DISTINCT FROM o.vendor_id AND u.id IS DISTINCT FROM w.requested_by AND u.id IS DISTINCT FROM f.requested_by FOR SHARE OF u;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the officer may not confirm the bank payment of %', about USING ERRCODE = 'KV006';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko bank reference ' || NEW.reference, 0));
    IF EXISTS (SELECT FROM bank_confirmations c WHERE c.reference = NEW.reference AND coalesce(c.order_id, c.withdrawal_id, c.refund_id) <> about AND c.withdrawn_at IS NULL)
        OR EXISTS (SELECT FROM bank_confirmations c WHERE coalesce(c.order_id, c.withdrawal_id, c.refund_id) = about AND c.reference <> NEW.reference AND c.withdrawn_at IS NULL)
        OR NOT EXISTS (SELECT FROM order_payouts p WHERE p.id = NEW.order_id AND p.amount = NEW.amount
            UNION ALL SELECT FROM otc_withdrawals w WHERE w.id = NEW.withdrawal_id AND w.payout_amount = NEW.amount
            UNION ALL SELECT FROM refunds f WHERE f.id = NEW.refund_id AND f.amount = NEW.amount)
        OR NEW.paid_on > (NEW.created_at AT TIME ZONE 'Africa/Nairobi')::date THEN
        RAISE EXCEPTION 'the confirmation of % contradicts earlier confirmations', about USING ERRCODE = 'KV002';
    END IF;
    IF NEW.order_id IS NULL THEN
        said := intent_terms(NEW.id, CASE WHEN NEW.refund_id IS NULL THEN 'withdrawal.confirm' ELSE 'refund.confirm' END, about, NEW.officer_id);
        IF NOT coalesce(upper(regexp_replace(said ->> 'reference', '[^0-9A-Za-z]', '', 'g')) = NEW.reference AND split_part(said ->> 'amount', ' ', 1)::numeric = NEW.amount
                AND (said ->> 'paid_on')::timestamptz AT TIME ZONE 'UTC' = NEW.paid_on::timestamp, false) THEN
            RAISE EXCEPTION 'the confirmation of % is not what the officer said', about USING ERRCODE = 'KV002';
        END IF;
    END IF;
    RETURN NEW;
END $$;
