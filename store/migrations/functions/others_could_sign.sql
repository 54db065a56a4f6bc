-- Reports whether another tool can have had enough signatures of a payload for the chain: those of owners whose keys are not ours, of which we may
-- never see some, and those that our key store made. The chain of a Safe takes for a change of the owners as many as for a payment. A cancel is not
-- asked about: it changes nothing that is agreed, and the next change may have other owners agreed before it is found.
CREATE OR REPLACE FUNCTION others_could_sign(payload uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN coalesce((SELECT bool_and(p.kind = 'cancel') OR sum(o.weight) FILTER (WHERE NOT o.held OR EXISTS (SELECT FROM multisig_signatures s WHERE s.payload_id = y.id AND s.owner = o.address))
            >= min(coalesce(a.control_threshold, a.threshold))
        FROM multisig_payloads y JOIN multisig_proposals p ON p.id = y.proposal_id JOIN multisig_accounts a ON a.id = y.wallet_id
            JOIN multisig_owners o ON o.account_id = a.id AND o.standing = 'agreed' WHERE y.id = payload), false);
END $$;
