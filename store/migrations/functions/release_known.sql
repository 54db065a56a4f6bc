-- When the owner of a release first named its recipient as a destination that rests: by an earlier release, or by confirming a
-- destination that it still has. A withdrawal's is known by its destination alone, and not at all when that was removed.
CREATE OR REPLACE FUNCTION release_known(r releases) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN CASE r.purpose WHEN 'withdrawal' THEN coalesce((SELECT d.confirmed_at FROM otc_withdrawals w JOIN otc_destinations d ON d.id = w.destination_id
        WHERE w.id = r.object_id AND d.status = 'confirmed'), clock_timestamp()) ELSE least(
        (SELECT min(k.opened_at) FROM releases k JOIN release_purposes p ON p.purpose = k.purpose AND p.rests = ''
            WHERE k.recipient = r.recipient AND (k.owner_id = r.owner_id OR k.house AND r.house)),
        (SELECT min(d.confirmed_at) FROM otc_destinations d WHERE d.merchant_id = r.owner_id AND d.recipient = r.recipient AND d.status = 'confirmed')) END;
END $$;
