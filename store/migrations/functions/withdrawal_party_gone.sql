-- Reports whether the merchant of a withdrawal or who requested it is switched off, or its destination was removed: nothing more begins
-- for it.
CREATE OR REPLACE FUNCTION withdrawal_party_gone(w otc_withdrawals) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM users u WHERE u.id IN (w.merchant_id, w.requested_by) AND NOT u.is_active)
        OR EXISTS (SELECT FROM otc_destinations d WHERE d.id = w.destination_id AND d.status = 'removed');
END $$;
