-- Reports whether the owners who signed a payload have together the weight that it needs. Who has left since counts no more.
CREATE OR REPLACE FUNCTION payload_signed(payload uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN coalesce((SELECT sum(o.weight) >= min(proposal_quorum(p)) FROM multisig_payloads y JOIN multisig_proposals p ON p.id = y.proposal_id
        JOIN multisig_signatures s ON s.payload_id = y.id JOIN multisig_owners o ON o.account_id = y.wallet_id AND o.address = s.owner AND o.standing = 'agreed' WHERE y.id = payload), false);
END $$;
