-- Mobile money of a deposit is a payment to our number, of its amount and day. The deposit is over only when none may be on its way.
-- What no officer confirms is let through when its money comes, within what needs none, and no stranger's; its time is that of the database.
CREATE OR REPLACE FUNCTION check_deposit_momo() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    fault text;
BEGIN
    fault := CASE
        WHEN NEW.status IN ('expired', 'cancelled') AND NEW.status <> OLD.status AND NEW.submitted_at IS NOT NULL AND NEW.received_at IS NULL
            AND deposit_may_be_paid(NEW, NEW.updated_at) THEN 'may still be paid'
        WHEN OLD.received_at IS NULL AND NEW.received_at IS NOT NULL AND NOT EXISTS (SELECT FROM c2b_payments p WHERE p.receipt = NEW.momo_receipt AND p.status = 'matched'
                AND (p.object_type, p.object_id) = ('otc_deposit', NEW.id) AND paid_on(p.receipt) = NEW.value_date)
            THEN 'is not what was paid to our number'
        WHEN OLD.automatic_at IS NULL AND NEW.automatic_at IS NOT NULL AND (OLD.received_at IS NOT NULL OR OLD.status <> 'pending'
                OR paid_by_stranger(OLD, NEW.momo_receipt) OR NEW.received_amount > deposit_room(NEW.merchant_id))
            OR NEW.status = 'confirmed' AND OLD.status <> 'confirmed' AND NEW.confirmed_by IS NULL AND NEW.automatic_at IS NULL THEN 'needs an officer'
    END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'deposit % %', NEW.id, fault USING ERRCODE = 'KV001';
    END IF;
    IF OLD.automatic_at IS NULL AND NEW.automatic_at IS NOT NULL THEN
        NEW.automatic_at := clock_timestamp();
    END IF;
    RETURN NEW;
END $$;
