-- Whether one officer is not enough to refund an order or a payment exception by mobile money, or to confirm the payee of
-- a refund: above the value from which refunds need another officer, without a decision of two who may still decide. Two
-- officers' decision holds as long as it could have been confirmed. Without the rule, every amount needs two.
CREATE OR REPLACE FUNCTION refund_needs_second(object uuid, amount numeric) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT amount > coalesce((SELECT r.one_above FROM approval_rules r WHERE r.object_type = 'refund'), 0)
        AND NOT EXISTS (SELECT FROM control_changes c JOIN users p ON p.id = c.proposed_by JOIN users d ON d.id = c.decided_by
            WHERE c.kind = 'refund_decision' AND c.change ->> 'object_id' = object::text AND c.status = 'confirmed' AND c.expires_at > clock_timestamp()
                AND p.is_active AND p.role IN ('admin', 'treasury') AND d.is_active AND d.role IN ('admin', 'treasury'))
$$;
