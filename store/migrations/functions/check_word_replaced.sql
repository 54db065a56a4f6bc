-- At the end of the transaction: what an officer said of the payment of an order by bank, only that officer takes back, by saying something else
-- or as one of the two who refuse the payment, until the officer may not confirm any more.
CREATE OR REPLACE FUNCTION check_word_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM bank_confirmations c WHERE c.order_id = NEW.order_id AND c.officer_id = NEW.officer_id AND c.withdrawn_at IS NULL)
        AND EXISTS (SELECT FROM users u WHERE u.id = NEW.officer_id AND u.is_active AND u.role IN ('admin', 'treasury'))
        AND NOT EXISTS (SELECT FROM control_changes c WHERE c.kind = 'bank_payout_refusal' AND c.applied_in = pg_current_xact_id()
            AND c.change ->> 'order_id' = NEW.order_id::text AND NEW.officer_id IN (c.proposed_by, c.decided_by)) THEN
        RAISE EXCEPTION 'a confirmation of % is taken back by nobody who may', NEW.order_id USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
