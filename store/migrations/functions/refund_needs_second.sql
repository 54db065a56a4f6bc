-- Whether one officer is not enough to refund an order or a payment exception by mobile money, or to confirm the payee of
-- a refund: above the value from which refunds need another officer, together with what single officers decided so within
-- a day, without a decision of two who may still decide. Two officers' decision holds as long as it could have been
-- confirmed. Without the rule, every amount needs two.
CREATE OR REPLACE FUNCTION refund_needs_second(object uuid, amount numeric) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT amount + (SELECT coalesce(sum(f.amount), 0) FROM refunds f WHERE f.rail = 'momo' AND (f.requested_by IS NOT NULL OR f.payee_confirmed)
            AND f.updated_at > clock_timestamp() - interval '24 hours' AND object NOT IN (f.id, coalesce(f.exception_id, f.order_id))
            AND NOT EXISTS (SELECT FROM control_changes c WHERE c.kind = 'refund_decision' AND c.status = 'confirmed'
                AND c.change ->> 'object_id' IN (f.id::text, coalesce(f.exception_id, f.order_id)::text)))
        > coalesce((SELECT r.one_above FROM approval_rules r WHERE r.object_type = 'refund'), 0)
        AND NOT EXISTS (SELECT FROM control_changes c JOIN users p ON p.id = c.proposed_by JOIN users d ON d.id = c.decided_by
            WHERE c.kind = 'refund_decision' AND c.change ->> 'object_id' = object::text AND c.status = 'confirmed' AND c.expires_at > clock_timestamp()
                AND p.is_active AND p.role IN ('admin', 'treasury') AND d.is_active AND d.role IN ('admin', 'treasury'))
$$;
