-- How many officers have to confirm that the bank made a payout: two above the value, together with what single officers
-- confirmed within a day.
CREATE OR REPLACE FUNCTION bank_officers(p order_payouts) RETURNS int LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p.amount + (SELECT coalesce(sum(o.amount), 0) FROM order_payouts o
            WHERE o.rail = 'bank' AND o.status = 'completed' AND o.id <> p.id AND o.completed_at > clock_timestamp() - interval '24 hours'
                AND 1 = (SELECT count(*) FROM bank_confirmations c WHERE c.order_id = o.id AND c.withdrawn_at IS NULL))
        > coalesce((SELECT r.one_above FROM approval_rules r WHERE r.object_type = 'bank_payout'), 0) THEN 2 ELSE 1 END
$$;
