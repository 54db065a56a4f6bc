-- Reports whether as many officers as it needs approved a change of the owners, and none rejected it.
CREATE OR REPLACE FUNCTION owners_approved(p multisig_proposals) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN p.kind = 'owners' AND (SELECT count(*) FROM owners_approvers(p)) >= p.policy_needed AND NOT proposal_rejected(p);
END $$;
