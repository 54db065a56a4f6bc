-- Reports whether a release has the terms of its object: a transfer, the crypto that funds a sale from a wallet in our
-- custody, which leaves its owner for a payee of shillings, earned fees, a refund, or a payout of an order. A transfer to an account of several
-- owners leaves to people outside, as far as the rule is concerned.
CREATE OR REPLACE FUNCTION release_matches(r releases) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN CASE r.purpose
        WHEN 'transfer' THEN EXISTS (SELECT FROM transfers f LEFT JOIN wallets i ON i.id = f.to_wallet_id AND i.purpose <> 'multisig' WHERE f.id = r.object_id AND f.created_at = r.opened_at AND f.value = r.value AND f.wallet_id::text = r.source
            AND f.requested_by = r.requester_id AND coalesce(f.vendor_id, f.sender_id) IS NOT DISTINCT FROM r.owner_id AND (i.id IS NOT NULL) = r.inside
            AND r.house = (r.owner_id IS NULL) AND r.recipient = CASE WHEN i.id IS NULL THEN f.network || ':' || f.to_address
                ELSE coalesce('user:' || coalesce(f.recipient_vendor_id, f.recipient_id)::text, 'house') END
            AND r.exempt = CASE WHEN i.id IS NOT NULL AND coalesce(f.vendor_id, f.sender_id) IS NOT DISTINCT FROM coalesce(f.recipient_vendor_id, f.recipient_id)
                THEN 'own' WHEN EXISTS (SELECT FROM otc_withdrawals y WHERE y.transfer_intent_id = f.intent_id) THEN 'withdrawal' ELSE '' END)
        WHEN 'funding' THEN EXISTS (SELECT FROM orders o WHERE o.id = r.object_id AND o.created_at = r.opened_at AND o.fund_wallet_id::text = r.source AND o.customer_id = r.owner_id
            AND o.customer_id = r.requester_id AND r.value >= o.fiat_amount AND NOT r.house AND NOT r.inside AND r.exempt = ''
            AND r.recipient = o.payment_method || ':' || CASE o.payment_method WHEN 'momo' THEN o.payment_phone ELSE o.beneficiary ->> 'AccountNumber' END)
        WHEN 'fee_sweep' THEN EXISTS (SELECT FROM fee_sweeps s WHERE s.id = r.object_id AND s.created_at = r.opened_at AND s.value = r.value AND s.wallet_id::text = r.source
            AND s.requested_by IS NOT DISTINCT FROM r.requester_id AND r.house AND r.inside AND r.recipient = 'house' AND r.exempt = 'own')
        ELSE (SELECT (t.house, t.inside, t.owner_id, t.source, t.requester_id, t.value, t.exempt, t.recipient)
                IS NOT DISTINCT FROM (r.house, r.inside, r.owner_id, r.source, r.requester_id, r.value, r.exempt, r.recipient)
            FROM release_terms(r.purpose, r.object_id) t)
    END;
END $$;
