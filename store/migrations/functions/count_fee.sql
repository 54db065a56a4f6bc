-- Sums the fees of a payment's transactions, including the most that the pending one may cost.
CREATE OR REPLACE FUNCTION count_fee() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    payment uuid;
BEGIN
    IF TG_TABLE_NAME = 'chain_payments' THEN
        payment := NEW.id;
    ELSE
        payment := NEW.payment_id;
    END IF;
    UPDATE network_fees SET expected = 0, amount = (SELECT coalesce(sum(a.fee) FILTER (WHERE a.status IN ('succeeded', 'failed')), 0)
            + coalesce(max(a.fee_limit) FILTER (WHERE a.status IN ('signed', 'broadcast', 'included', 'replaced')), 0)
        FROM chain_attempts a WHERE a.payment_id = payment), at = greatest(at, NEW.created_at)
    WHERE payment_id = payment;
    RETURN NULL;
END $$;
