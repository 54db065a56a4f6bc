-- The officers whose approval of a change of the owners counts now: of exactly this change, by who may still approve and did not propose it.
CREATE OR REPLACE FUNCTION owners_approvers(p multisig_proposals) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
    SELECT u.id FROM users u JOIN approvals a ON a.officer_id = u.id WHERE p.kind = 'owners' AND u.is_active AND u.role IN ('admin', 'treasury') AND u.id <> p.proposer_id
        AND a.object_type = 'multisig_proposal' AND a.object_id = p.id AND a.action = 'approve' AND a.digest = p.digest
$$;
