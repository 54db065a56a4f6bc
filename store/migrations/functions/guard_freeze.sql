-- One active officer freezes outgoing payments, after all that passed before has committed. Two officers lift the freeze.
CREATE OR REPLACE FUNCTION guard_freeze() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('kivuko freeze', 0));
        PERFORM FROM users WHERE id = NEW.pulled_by AND is_active AND role IN ('admin', 'treasury', 'otc_officer') FOR SHARE;
        IF NOT FOUND OR NEW.lifted_at IS NOT NULL THEN
            RAISE EXCEPTION 'only an active officer freezes outgoing payments' USING ERRCODE = 'KV006';
        END IF;
        RETURN NEW;
    END IF;
    PERFORM FROM control_changes c WHERE c.id = NEW.change_id AND c.kind = 'freeze_lift' AND c.applied_in = pg_current_xact_id()
        AND c.change ->> 'freeze_id' = NEW.id::text;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed that freeze % is lifted', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
