-- Reports whether a proposal is rejected: by an admin, by so many officers that too few are left who could approve it, or because its
-- recipient is no longer accepted. Any officer rejects a change of the owners.
CREATE OR REPLACE FUNCTION proposal_rejected(p multisig_proposals) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    rejected uuid[] := ARRAY(SELECT a.officer_id FROM approvals a WHERE a.object_type = 'multisig_proposal' AND a.object_id = p.id AND a.action = 'reject' AND a.digest = p.digest);
BEGIN
    RETURN EXISTS (SELECT FROM users u WHERE u.id = ANY (rejected) AND u.is_active AND u.role = 'admin')
        OR coalesce(cardinality(rejected) > 0 AND (SELECT count(*) FROM users u WHERE u.is_active AND u.role IN ('admin', 'treasury') AND u.id <> p.proposer_id AND u.id <> ALL (rejected))
            < (SELECT r.officers FROM releases r WHERE r.purpose = 'proposal' AND r.object_id = p.id AND r.passed_at IS NULL), false)
        OR p.kind = 'owners' AND EXISTS (SELECT FROM users u WHERE u.id = ANY (rejected) AND u.is_active AND u.role IN ('admin', 'treasury'))
        OR proposal_hit(p);
END $$;
