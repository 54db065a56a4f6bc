-- Reports whether owners may sign for a proposal: its release has passed, or enough officers approved a change of the owners and the pause since
-- then is over (owners_signable); and its wallet still has the owners and the policy that it was released for. A cancel needs no release.
CREATE OR REPLACE FUNCTION proposal_released(proposal uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM multisig_proposals p JOIN multisig_accounts a ON a.id = p.wallet_id WHERE p.id = proposal AND a.status = 'active' AND a.policy_version = p.policy_version
        AND CASE p.kind WHEN 'payment' THEN EXISTS (SELECT FROM releases r WHERE r.purpose = 'proposal' AND r.object_id = p.id AND r.passed_at IS NOT NULL AND r.ended_at IS NULL)
            WHEN 'owners' THEN coalesce(owners_signable(p) <= clock_timestamp(), false) AND owners_approved(p) ELSE true END);
END $$;
