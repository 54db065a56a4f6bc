-- The shillings that single officers attested as paid within a day by receipts of payouts of other objects, and that no
-- second officer confirmed.
CREATE OR REPLACE FUNCTION attested_alone(object uuid) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT coalesce(sum(x.amount), 0) FROM (
        SELECT a.amount, a.object_id, a.receipt FROM payment_attempts a
            WHERE a.direction = 'payout' AND a.result_class = 'attested' AND a.settled_at > clock_timestamp() - interval '24 hours'
        UNION SELECT f.amount, f.id, f.receipt FROM refunds f
            WHERE f.rail = 'momo' AND f.status = 'completed' AND f.paid_by IS NULL AND f.completed_at > clock_timestamp() - interval '24 hours') x
    WHERE x.object_id <> object AND NOT EXISTS (SELECT FROM payout_attestations w WHERE w.object_id = x.object_id AND w.receipt = x.receipt));
END $$;
