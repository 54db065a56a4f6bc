-- Reports whether the recipient of a proposal outside of our custody is on the deny list, or its latest screening was a hit, or who shall be an
-- owner is on the deny list.
CREATE OR REPLACE FUNCTION proposal_hit(p multisig_proposals) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN p.kind = 'owners' AND EXISTS (SELECT FROM jsonb_array_elements(p.change -> 'owners') o JOIN deny_list d ON d.network = p.network AND d.address = o ->> 'address' AND d.removed_at IS NULL)
        OR p.to_wallet_id IS NULL AND (EXISTS (SELECT FROM deny_list d WHERE d.network = p.network AND d.address = p.destination AND d.removed_at IS NULL)
        OR coalesce((SELECT s.verdict = 'hit' FROM screenings s JOIN chain_payments c ON c.id = s.payment_id WHERE c.purpose = 'proposal' AND c.object_id = p.id
            ORDER BY s.at DESC, s.id DESC LIMIT 1), false));
END $$;
