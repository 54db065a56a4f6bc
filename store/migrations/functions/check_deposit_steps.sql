-- What is wrong with the confirmation, the settlement or the audit of a deposit; NULL for nothing. Who brought a statement in is none of
-- the officers of a deposit that its line proves.
CREATE OR REPLACE FUNCTION check_deposit_steps(was otc_deposits, now otc_deposits) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    importers uuid[] := ARRAY(SELECT unnest(ARRAY[s.imported_by, f.uploaded_by]) FROM bank_lines l JOIN bank_statements s ON s.id = l.statement_id
        JOIN files f ON f.id = s.file_id WHERE l.id = now.statement_line_id);
    automatic numeric := otc_limit(now.merchant_id);
BEGIN
    RETURN CASE
        WHEN now.confirmed_by IS NOT NULL AND was.confirmed_by IS NULL AND (was.status <> 'claimed' OR now.confirmed_by <> was.claimed_by OR was.claim_expires_at <= now.updated_at
                OR NOT deposit_asked(now.id, 'confirm', now.confirmed_by, '{otc_officer}')) THEN 'is confirmed by nobody who holds it'
        WHEN now.confirmed_by <> was.confirmed_by OR now.agreed_by <> was.agreed_by THEN 'was confirmed by another officer'
        WHEN now.agreed_by IS NOT NULL AND was.agreed_by IS NULL AND NOT deposit_asked(now.id, 'confirm', now.agreed_by, '{otc_officer}') THEN 'has nobody who agreed'
        WHEN now.confirmed_by IS NOT NULL AND was.confirmed_by IS NULL AND now.method = 'bank'
            AND NOT EXISTS (SELECT FROM otc_confirmations c WHERE c.deposit_id = now.id AND c.officer_id = now.confirmed_by AND c.withdrawn_at IS NULL
                AND c.amount = now.received_amount AND c.value_date = now.value_date AND c.bank_account_id = now.bank_account_id
                AND CASE WHEN now.statement_line_id IS NOT NULL THEN c.line_id = now.statement_line_id ELSE c.reference = now.bank_reference
                    AND EXISTS (SELECT FROM otc_confirmations a WHERE a.deposit_id = now.id AND a.officer_id = now.agreed_by AND a.withdrawn_at IS NULL
                        AND (a.amount, a.value_date, a.bank_account_id, a.reference) = (c.amount, c.value_date, c.bank_account_id, c.reference)) END)
            THEN 'is confirmed otherwise than its officers said'
        WHEN now.confirmed_by IS NULL AND was.confirmed_by IS NOT NULL AND (now.status <> 'claimed'
                OR EXISTS (SELECT FROM users u WHERE u.id = was.confirmed_by AND u.is_active AND u.role = 'otc_officer')
                    AND (was.agreed_by IS NULL OR EXISTS (SELECT FROM users u WHERE u.id = was.agreed_by AND u.is_active AND u.role = 'otc_officer')))
            THEN 'loses a confirmation that counts'
        WHEN was.status = 'pending' AND now.status = 'confirmed' AND NOT (now.method IN ('momo', 'c2b') AND now.confirmed_by IS NULL AND now.automatic_at IS NOT NULL)
            THEN 'needs an officer'
        WHEN now.status = 'confirmed' AND was.status = 'info_required' AND now.method = 'bank' AND was.confirmed_by IS NULL THEN 'is not confirmed'
        WHEN now.status = 'confirmed' AND was.status <> 'confirmed' AND now.confirmed_by = ANY (importers) THEN 'is confirmed by who brought its line in'
        WHEN now.credited_by IS NOT NULL AND was.credited_by IS NULL AND (now.credited_by = ANY (importers) OR NOT deposit_asked(now.id, 'settle', now.credited_by, '{treasury}'))
            THEN 'is settled by nobody who may'
        WHEN now.status = 'settling' AND was.status = 'confirmed' AND EXISTS (SELECT FROM unnest(ARRAY[now.confirmed_by, now.agreed_by]) p
                WHERE p IS NOT NULL AND NOT deposit_asked(now.id, 'confirm', p, '{otc_officer}')) THEN 'is confirmed by an officer who was switched off'
        WHEN now.status = 'settling' AND was.status = 'confirmed' AND now.credited_by IS NULL AND (now.confirmed_by IS NOT NULL OR now.automatic_at IS NULL OR now.received_amount > automatic)
            THEN 'is settled by nobody'
        WHEN now.status = 'credited' AND was.status = 'settling' AND now.asset <> 'KES' AND NOT EXISTS (SELECT FROM transfers f WHERE f.id = now.transfer_id AND f.status = 'completed')
            THEN 'has crypto that did not arrive'
        WHEN now.transfer_id IS NOT NULL AND now.transfer_id IS DISTINCT FROM was.transfer_id AND NOT EXISTS (SELECT FROM transfers f JOIN wallets w ON w.id = f.wallet_id
                WHERE f.id = now.transfer_id AND f.requested_by = now.credited_by AND f.kind = 'internal' AND f.to_wallet_id = now.to_wallet_id AND f.network = now.network
                    AND f.asset = now.asset AND f.amount = now.crypto_amount AND w.owner_id IS NULL AND w.purpose = 'treasury') THEN 'is not what its transfer pays'
        WHEN now.transfer_intent_id IS NOT NULL AND was.transfer_intent_id IS NULL AND NOT EXISTS (SELECT FROM intents i WHERE i.id = now.transfer_intent_id
                AND i.kind = 'transfer.open' AND i.user_id = now.credited_by) THEN 'has a transfer that its officer did not ask for'
        WHEN now.transfer_id IS NOT NULL AND now.transfer_id <> (SELECT i.object_id FROM intents i WHERE i.id = now.transfer_intent_id) THEN 'has a transfer that nobody asked for'
        -- A second transfer is asked for only when the first one can't pay any more.
        WHEN was.status = 'settling' AND now.status = 'confirmed' AND NOT EXISTS (SELECT FROM intents i LEFT JOIN transfers f ON f.id = i.object_id WHERE i.id = was.transfer_intent_id
                AND CASE WHEN f.id IS NULL THEN i.refused_at IS NOT NULL
                    ELSE f.status IN ('cancelled', 'rejected', 'failed') OR f.status = 'blocked' AND f.status_detail = 'released' END) THEN 'has a transfer that may still pay'
        WHEN now.audited_by IS NOT NULL AND was.audited_by IS NULL AND (now.audited_by = ANY (importers) OR NOT deposit_asked(now.id, 'audit', now.audited_by, '{admin,treasury}'))
            THEN 'is audited by nobody who may'
    END;
END $$;
