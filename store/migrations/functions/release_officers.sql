-- How many officers have to approve a release at a moment, by its value together with the highest of its running sums; see
-- JudgeRelease in the code.
CREATE OR REPLACE FUNCTION release_officers(r releases, moment timestamptz) RETURNS int LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT greatest(release_least(r), CASE WHEN r.exempt <> '' THEN 0 WHEN t.total > a.two_above THEN 2 WHEN t.total > a.one_above THEN 1 ELSE 0 END)
    FROM release_purposes p JOIN approval_rules a ON a.object_type = p.rule CROSS JOIN LATERAL release_sums(r, moment) s
        CROSS JOIN LATERAL (SELECT r.value + greatest(s.source, s.owner, s.requester, s.recipient) AS total) t
    WHERE p.purpose = r.purpose);
END $$;
