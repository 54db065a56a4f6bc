-- The digest of a proposal that moves nothing, as the code computes it (Proposal.Intent): an officer's approval names all of it.
CREATE OR REPLACE FUNCTION proposal_digest(p multisig_proposals) RETURNS text LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN encode(sha256(convert_to(concat_ws(E'\n', 'kivuko multisig proposal v1', p.id, p.kind, p.proposer_id, p.network, p.wallet_id, p.destination, p.asset,
        CASE p.asset WHEN 'ETH' THEN '0.000000000000000000' ELSE '0.000000' END, p.destination, p.policy_version, encode(convert_to(p.reference, 'UTF8'), 'hex'),
        coalesce(p.supersedes, '00000000-0000-0000-0000-000000000000'), encode(convert_to(coalesce(owners_text(p.change), ''), 'UTF8'), 'hex')) || E'\n', 'UTF8')), 'hex');
END $$;
