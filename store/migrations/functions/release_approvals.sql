-- How many officers who may still approve have approved the present terms of a release's object. They are locked, so that
-- none of them is switched off at the same moment.
CREATE OR REPLACE FUNCTION release_approvals(r releases) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM (SELECT u.id FROM approvals a JOIN users u ON u.id = a.officer_id
        WHERE a.object_type = r.purpose AND a.object_id = r.object_id AND a.action = 'approve' AND u.id <> r.requester_id
            AND a.digest = (SELECT f.digest FROM transfers f WHERE f.id = r.object_id)
            AND u.is_active AND u.role IN ('admin', 'treasury') FOR SHARE OF u) x);
END $$;
