-- Reports whether the latest screening of a withdrawal's address accepts it. Numbers, accounts at banks and wallets in our custody are
-- not screened.
CREATE OR REPLACE FUNCTION withdrawal_cleared(w otc_withdrawals) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN w.method <> 'chain' OR EXISTS (SELECT FROM otc_destinations d JOIN wallets o ON o.network = d.network AND o.address = d.address WHERE d.id = w.destination_id)
        OR coalesce((SELECT s.verdict = 'clear' FROM screenings s WHERE s.withdrawal_id = w.id ORDER BY s.at DESC, s.id DESC LIMIT 1), false);
END $$;
