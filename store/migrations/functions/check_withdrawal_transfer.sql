-- What is wrong with the transfer of a withdrawal's crypto; NULL for nothing. The executing officer asks for it, and it pays exactly what
-- the withdrawal says: it is opened by what its intent says, and asks no officers besides those of the withdrawal. Another one is asked for
-- only when the first can't pay any more.
CREATE OR REPLACE FUNCTION check_withdrawal_transfer(was otc_withdrawals, now otc_withdrawals) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE
        WHEN now.transfer_intent_id IS NULL AND was.transfer_intent_id IS NOT NULL THEN CASE WHEN now.status = 'approved' THEN withdrawal_alive(was) ELSE 'loses its transfer' END
        WHEN was.transfer_intent_id IS NULL AND NOT EXISTS (SELECT FROM intents i JOIN otc_destinations d ON d.id = now.destination_id
                CROSS JOIN LATERAL (SELECT convert_from(i.statement, 'UTF8')::jsonb -> 'terms' AS said) t JOIN wallets w ON w.id::text = t.said ->> 'wallet_id'
            WHERE i.id = now.transfer_intent_id AND i.kind = 'transfer.open' AND i.user_id = now.executed_by AND i.used_at IS NULL AND i.refused_at IS NULL
                AND w.owner_id IS NULL AND w.purpose = 'treasury' AND (t.said ->> 'network', t.said ->> 'recipient_address') = (d.network, d.address)
                AND split_part(t.said ->> 'amount', ' ', 1)::numeric = now.payout_amount AND split_part(t.said ->> 'amount', ' ', 2) = now.payout_asset
                AND NOT t.said ? 'quote_id') THEN 'has a transfer that its officer did not ask for'
        WHEN now.transfer_intent_id <> was.transfer_intent_id THEN 'has another transfer'
        WHEN now.transfer_id IS NOT NULL AND now.transfer_id <> (SELECT i.object_id FROM intents i WHERE i.id = now.transfer_intent_id) THEN 'has a transfer that nobody asked for'
        WHEN now.transfer_id IS NOT NULL AND NOT EXISTS (SELECT FROM transfers f JOIN wallets w ON w.id = f.wallet_id JOIN otc_destinations d ON d.id = now.destination_id
                WHERE f.id = now.transfer_id AND f.requested_by = now.executed_by AND (f.network, f.to_address) = (d.network, d.address)
                    AND (f.asset, f.amount) = (now.payout_asset, now.payout_amount) AND w.owner_id IS NULL AND w.purpose = 'treasury') THEN 'is not what its transfer pays'
    END;
END $$;
