-- How many officers' approvals of a release count. They are locked, so that none of them is switched off at the same moment.
CREATE OR REPLACE FUNCTION release_approvals(r releases) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM (SELECT u.id FROM users u WHERE u.id IN (SELECT release_voices(r)) AND u.is_active AND u.role IN ('admin', 'treasury') FOR SHARE OF u) x);
END $$;
