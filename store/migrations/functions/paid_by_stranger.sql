-- Reports whether a payment is a deposit's money only because an officer named it, and came from no phone that we know of the merchant: the
-- deposit's, its own, that of who created the deposit, or a destination that it confirmed. One without a payer is a stranger's.
CREATE OR REPLACE FUNCTION paid_by_stranger(d otc_deposits, paid text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM c2b_payments p WHERE p.receipt = paid AND (p.id = d.named_payment_id OR p.reference NOT IN ('', d.payment_reference))
        AND p.party_hash <> ALL (ARRAY(SELECT encode(sha256(convert_to(ltrim(k.phone, '+'), 'UTF8')), 'hex') FROM (
            SELECT d.phone UNION ALL SELECT u.phone_number FROM users u WHERE u.id IN (d.merchant_id, d.created_by)
            UNION ALL SELECT o.phone FROM otc_destinations o WHERE o.merchant_id = d.merchant_id AND o.kind = 'phone' AND o.status = 'confirmed') k WHERE k.phone <> '')));
END $$;
