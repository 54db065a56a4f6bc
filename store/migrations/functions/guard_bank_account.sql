-- An account of the house at a bank has exactly the data that two officers agreed on, because others pay to it. One officer
-- may switch it off.
CREATE OR REPLACE FUNCTION guard_bank_account() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    agreed jsonb := jsonb_build_object('id', NEW.id, 'bank_name', NEW.bank_name, 'bank_code', NEW.bank_code, 'branch', NEW.branch,
        'swift_code', NEW.swift_code, 'account_name', NEW.account_name, 'account_number', NEW.account_number, 'currency', NEW.currency,
        'is_active', NEW.is_active);
BEGIN
    IF TG_OP = 'UPDATE' AND NOT NEW.is_active AND (NEW.bank_name, NEW.bank_code, NEW.branch, NEW.swift_code, NEW.account_name)
            IS NOT DISTINCT FROM (OLD.bank_name, OLD.bank_code, OLD.branch, OLD.swift_code, OLD.account_name) THEN
        RETURN NEW;
    END IF;
    PERFORM FROM control_changes c WHERE c.kind = 'bank_account' AND c.applied_in = pg_current_xact_id() AND c.change = agreed;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed bank account %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
