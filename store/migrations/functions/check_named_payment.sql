-- A payment to our number pays an OTC deposit under the deposit's reference, or because an officer named it: a second one above what the
-- merchant's mobile money needs no officer for. What is named is in the operator's statement, undisputed, and of a deposit that takes money.
-- One that was set aside leaves its exception in the same transaction, and only so.
CREATE OR REPLACE FUNCTION check_named_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.exception_id IS NULL AND (NEW.object_type <> 'otc_deposit' OR NEW.reference = ''
            OR EXISTS (SELECT FROM otc_deposits d WHERE d.id = NEW.object_id AND d.payment_reference = NEW.reference)) THEN
        RETURN NEW;
    END IF;
    PERFORM FROM otc_deposits d WHERE NEW.object_type = 'otc_deposit' AND d.id = NEW.object_id AND d.named_payment_id = NEW.id AND d.received_at IS NULL
        AND d.status IN ('pending', 'assigned', 'claimed', 'info_required', 'on_hold') AND NEW.listed_at IS NOT NULL AND NOT NEW.disputed
        AND named_asked(d.id, NEW.id, d.named_by) AND NOT others_reference(NEW.reference, d.merchant_id)
        AND (named_asked(d.id, NEW.id, d.named_second) OR NEW.amount <= deposit_room(d.merchant_id));
    IF NOT FOUND THEN
        RAISE EXCEPTION 'payment % was named by nobody who may', NEW.id USING ERRCODE = 'KV006';
    END IF;
    IF NEW.exception_id IS NOT NULL AND NOT EXISTS (SELECT FROM payment_exceptions x WHERE x.id = NEW.exception_id AND x.status = 'matched') THEN
        RAISE EXCEPTION 'officers decided otherwise about payment %', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
