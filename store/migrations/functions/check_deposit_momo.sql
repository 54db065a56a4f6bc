-- Mobile money of a deposit is a payment to our number, of its amount and day. The deposit is over only when none may be on its way,
-- and what no officer confirmed is within what needs none.
CREATE OR REPLACE FUNCTION check_deposit_momo() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    automatic numeric := (SELECT o.automatic FROM otc_limits o WHERE o.merchant_id IN (NEW.merchant_id, '00000000-0000-7000-8000-6b6976756b6f')
        ORDER BY o.merchant_id = NEW.merchant_id DESC LIMIT 1);
    fault     text;
BEGIN
    fault := CASE
        WHEN NEW.status IN ('expired', 'cancelled') AND NEW.status <> OLD.status AND NEW.submitted_at IS NOT NULL AND NEW.received_at IS NULL
            AND deposit_may_be_paid(NEW, NEW.updated_at) THEN 'may still be paid'
        WHEN OLD.received_at IS NULL AND NEW.received_at IS NOT NULL AND NOT EXISTS (SELECT FROM c2b_payments p WHERE p.receipt = NEW.momo_receipt AND p.status = 'matched'
                AND (p.object_type, p.object_id) = ('otc_deposit', NEW.id) AND (p.paid_at AT TIME ZONE 'Africa/Nairobi')::date = NEW.value_date)
            THEN 'is not what was paid to our number'
        WHEN NEW.status = 'confirmed' AND OLD.status <> 'confirmed' AND NEW.confirmed_by IS NULL AND NEW.received_amount > automatic THEN 'needs an officer'
    END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'deposit % %', NEW.id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
