-- How many officers the policy of an account of several owners asks for, by a value in shillings.
CREATE OR REPLACE FUNCTION multisig_needed(account uuid, policy int, value numeric) RETURNS int LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN coalesce((SELECT r.approvals FROM multisig_rules r WHERE r.account_id = account AND r.version = policy AND r.above < $3 ORDER BY r.above DESC LIMIT 1),
        (SELECT a.approvals FROM multisig_accounts a WHERE a.id = account AND a.policy_version = policy));
END $$;
