-- How many officers a change of the owners needs that is asked for now: one more than any payment of the wallet, or all who can approve it where
-- these are fewer, but never fewer than such a payment, nor than two. It is stored with the proposal. Officers who are switched off later leave
-- it: then too few can approve.
CREATE OR REPLACE FUNCTION owners_needed(account uuid, policy int, proposer uuid) RETURNS int LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    most int := (SELECT greatest(a.approvals, (SELECT max(r.approvals) FROM multisig_rules r WHERE r.account_id = a.id AND r.version = policy))
        FROM multisig_accounts a WHERE a.id = account AND a.policy_version = policy);
BEGIN
    RETURN greatest(2, most, least(most + 1, (SELECT count(*)::int FROM users u WHERE u.is_active AND u.role IN ('admin', 'treasury') AND u.id <> proposer)));
END $$;
