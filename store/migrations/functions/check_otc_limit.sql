-- A merchant's automatic limit is raised by exactly what two officers agreed; one admin may lower it. The lock is that of deposit_room, so that
-- a deposit is judged by the limit before or after. A subvendor has none: its deposits are its vendor's.
CREATE OR REPLACE FUNCTION check_otc_limit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko automatic ' || NEW.merchant_id, 0));
    IF NEW.entry <> (SELECT coalesce(max(o.entry), 0) + 1 FROM otc_limits o WHERE o.merchant_id = NEW.merchant_id) THEN
        RAISE EXCEPTION 'the limit of % is not its next one', NEW.merchant_id USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM users u WHERE u.id = NEW.entered_by AND u.is_active AND (u.role = 'admin' OR u.role = 'treasury' AND NEW.change_id IS NOT NULL) FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the limit of % is entered by nobody who may', NEW.merchant_id USING ERRCODE = 'KV006';
    END IF;
    PERFORM FROM users u WHERE u.id = NEW.merchant_id AND u.role = 'vendor';
    IF NOT FOUND THEN
        RAISE EXCEPTION '% is no vendor', NEW.merchant_id USING ERRCODE = 'KV002';
    END IF;
    IF (NEW.change_id IS NOT NULL OR NEW.automatic > otc_limit(NEW.merchant_id))
        AND NOT EXISTS (SELECT FROM control_changes c WHERE c.id = NEW.change_id AND c.kind = 'otc_limit' AND c.applied_in = pg_current_xact_id()
            AND c.change ->> 'merchant_id' = NEW.merchant_id::text AND (c.change ->> 'automatic')::numeric = NEW.automatic AND c.decided_by = NEW.entered_by) THEN
        RAISE EXCEPTION 'no second officer confirmed the limit of %', NEW.merchant_id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
