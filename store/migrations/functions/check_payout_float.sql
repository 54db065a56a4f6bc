-- At the end of the transaction, because holds are written last: an attempt's possible cost is reserved in the float.
CREATE OR REPLACE FUNCTION check_payout_float() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = NEW.hold_id AND a.kind = 'momo_payout'
            AND a.asset = NEW.asset AND h.object_type = 'payment_attempt' AND h.object_id = NEW.id AND h.status = 'held' AND h.amount >= NEW.amount) THEN
        RAISE EXCEPTION 'payment attempt % reserves no float', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
