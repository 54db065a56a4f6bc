-- Whether two officers attested that the payee of a sale was paid.
CREATE OR REPLACE FUNCTION payee_attested(sale uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM payout_attestations w WHERE w.object_type = 'order' AND w.object_id = sale AND w.receipt <> '');
END $$;
