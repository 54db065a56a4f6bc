-- The balance of a statement is compared when each line of its account is matched or set aside, with what the ledger has then and
-- what of the lines is not booked.
CREATE OR REPLACE FUNCTION check_statement_compared() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM bank_lines l WHERE l.bank_account_id = NEW.bank_account_id AND l.status = 'new')
        OR NEW.ledger IS DISTINCT FROM bank_ledger(NEW.bank_account_id) OR NEW.unexplained IS DISTINCT FROM bank_unbooked(NEW.bank_account_id) THEN
        RAISE EXCEPTION 'statement % is not ready to be compared', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
