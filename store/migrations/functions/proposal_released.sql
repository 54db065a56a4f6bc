-- Reports whether the release of a proposal has passed, and its wallet still has the owners and the policy that it was released for.
CREATE OR REPLACE FUNCTION proposal_released(proposal uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM releases r WHERE r.purpose = 'proposal' AND r.object_id = proposal AND r.passed_at IS NOT NULL AND r.ended_at IS NULL)
        AND EXISTS (SELECT FROM multisig_proposals p JOIN multisig_accounts a ON a.id = p.wallet_id WHERE p.id = proposal AND a.status = 'active' AND a.policy_version = p.policy_version);
END $$;
