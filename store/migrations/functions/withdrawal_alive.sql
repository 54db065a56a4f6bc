-- Why a withdrawal may have left, or may still leave, without another decision; NULL when it did not and can't.
CREATE OR REPLACE FUNCTION withdrawal_alive(w otc_withdrawals) RETURNS text LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN CASE
        WHEN EXISTS (SELECT FROM payment_attempts a WHERE a.object_type = 'otc_withdrawal' AND a.object_id = w.id AND a.direction = 'payout'
            AND a.status IN ('created', 'unknown', 'accepted', 'succeeded')) THEN 'may have been paid by mobile money'
        WHEN w.claimed THEN 'is said to be paid'
        WHEN EXISTS (SELECT FROM bank_confirmations c WHERE c.withdrawal_id = w.id AND c.withdrawn_at IS NULL) THEN 'was paid by bank, as an officer says'
        WHEN EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'withdrawal' AND p.object_id = w.id AND p.status NOT IN ('cancelled', 'completed')) THEN 'has crypto on its way'
        WHEN w.method <> 'chain' AND put_back() AND w.executed_by IS NOT NULL THEN 'may have been paid before the database was put back'
        WHEN w.transfer_intent_id IS NOT NULL AND NOT EXISTS (SELECT FROM intents i LEFT JOIN transfers f ON f.id = i.object_id WHERE i.id = w.transfer_intent_id
            AND CASE WHEN f.id IS NULL THEN i.refused_at IS NOT NULL
                ELSE f.status IN ('cancelled', 'rejected', 'failed') OR f.status = 'blocked' AND f.status_detail = 'released' END) THEN 'has a transfer that may still pay'
    END;
END $$;
