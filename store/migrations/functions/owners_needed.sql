-- How many officers a change of the owners needs: one more than any payment of the wallet, and at most all who can approve it.
CREATE OR REPLACE FUNCTION owners_needed(p multisig_proposals) RETURNS int LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN least(p.policy_needed, greatest(1, (SELECT count(*)::int FROM users u WHERE u.is_active AND u.role IN ('admin', 'treasury') AND u.id <> p.proposer_id)));
END $$;
