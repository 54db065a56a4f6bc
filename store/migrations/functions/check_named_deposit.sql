-- Officers who name the payment of a deposit said so themselves, each is another one, and neither settles nor audits it.
CREATE OR REPLACE FUNCTION check_named_deposit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    fault text;
BEGIN
    fault := CASE
        WHEN OLD.received_at IS NOT NULL AND (NEW.named_payment_id, NEW.named_by, NEW.named_second) IS DISTINCT FROM (OLD.named_payment_id, OLD.named_by, OLD.named_second)
            THEN 'has its money already'
        WHEN NEW.named_by IS NOT NULL AND (NEW.named_payment_id, NEW.named_by) IS DISTINCT FROM (OLD.named_payment_id, OLD.named_by)
            AND NOT named_asked(NEW.id, NEW.named_payment_id, NEW.named_by) THEN 'has a payment that nobody named'
        WHEN NEW.named_second IS NOT NULL AND (NEW.named_payment_id, NEW.named_second) IS DISTINCT FROM (OLD.named_payment_id, OLD.named_second)
            AND NOT named_asked(NEW.id, NEW.named_payment_id, NEW.named_second) THEN 'has a payment that nobody named a second time'
        WHEN NEW.received_at IS NOT NULL AND (NEW.credited_by IN (NEW.named_by, NEW.named_second) OR NEW.audited_by IN (NEW.named_by, NEW.named_second))
            THEN 'is closed by who named its money'
    END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'deposit % %', NEW.id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
