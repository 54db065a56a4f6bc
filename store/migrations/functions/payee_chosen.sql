-- Whether an officer decides who gets a refund by mobile money: a source names another payer than the number that would get
-- it.
CREATE OR REPLACE FUNCTION payee_chosen(f refunds) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT f.payee_confirmed OR (f.status = 'needs_review' AND f.detail = 'payer_differs')
$$;
