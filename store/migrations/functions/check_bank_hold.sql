-- A bank payout reserves its money at the house's bank. Holds are written last.
CREATE OR REPLACE FUNCTION check_bank_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = NEW.hold_id AND a.kind = 'bank'
            AND a.asset = NEW.asset AND h.object_type = 'order' AND h.object_id = NEW.id AND h.status = 'held' AND h.amount = NEW.amount) THEN
        RAISE EXCEPTION 'the payout of order % reserves nothing at the bank', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
