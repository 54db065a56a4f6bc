-- Reports whether who proposed a payment may not propose any more: nothing of it is signed here then.
CREATE OR REPLACE FUNCTION proposal_party_gone(p multisig_proposals) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN NOT EXISTS (SELECT FROM users u WHERE u.id = p.proposer_id AND u.is_active AND (u.role IN ('admin', 'treasury') OR u.role = 'vendor' AND u.id = p.merchant_id));
END $$;
