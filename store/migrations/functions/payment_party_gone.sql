-- Reports whether a party of a payment that is not signed yet is switched off: who buys or sells, who sends, or whose wallet
-- gets gas ahead of need. What goes back to somebody, or stays in custody, goes on.
CREATE OR REPLACE FUNCTION payment_party_gone(p chain_payments) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN CASE
        WHEN p.purpose IN ('order', 'funding') THEN order_party_gone(p.object_id)
        WHEN p.purpose = 'transfer' THEN EXISTS (SELECT FROM transfers f JOIN users u ON u.id IN (f.requested_by, f.sender_id, f.vendor_id)
            WHERE f.id = p.object_id AND NOT u.is_active)
        WHEN p.purpose = 'swap_collect' THEN EXISTS (SELECT FROM swaps s WHERE s.id = p.object_id AND swap_party_gone(s))
        WHEN p.purpose = 'proposal' THEN EXISTS (SELECT FROM multisig_proposals s WHERE s.id = p.object_id AND proposal_party_gone(s))
        WHEN p.purpose = 'withdrawal' THEN EXISTS (SELECT FROM otc_withdrawals w WHERE w.id = p.object_id AND withdrawal_party_gone(w))
        WHEN p.purpose = 'gas' THEN EXISTS (SELECT FROM wallets w JOIN users u ON u.id IN (w.owner_id, w.vendor_id) WHERE w.id = p.object_id AND NOT u.is_active)
        ELSE false END;
END $$;
