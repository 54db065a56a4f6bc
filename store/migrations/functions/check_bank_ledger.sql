-- An account of the ledger for money at a bank is that of one of the house's accounts there.
CREATE OR REPLACE FUNCTION check_bank_ledger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM bank_accounts b WHERE b.id = NEW.owner_id AND b.currency = NEW.asset) THEN
        RAISE EXCEPTION 'account % belongs to no bank account of the house', NEW.code USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
