-- The weight of owners whose signatures a proposal needs. A change of the owners of a Safe needs one owner more than a payment, if there is
-- one: the chain itself would take the payments' threshold. On TRON the owner permission has a threshold of its own.
CREATE OR REPLACE FUNCTION proposal_quorum(p multisig_proposals) RETURNS int LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT CASE WHEN p.kind <> 'owners' THEN a.threshold WHEN a.kind = 'tron' THEN coalesce(a.control_threshold, a.threshold)
            ELSE least(a.threshold + 1, (SELECT count(*)::int FROM multisig_owners o WHERE o.account_id = a.id AND o.standing = 'agreed')) END
        FROM multisig_accounts a WHERE a.id = p.wallet_id);
END $$;
