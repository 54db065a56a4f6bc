-- Two officers admit a new officer. The exception is the second such account ever: the first officer is alone and must
-- be able to add a colleague who confirms. Accounts are never deleted, so deactivating colleagues does not restore the
-- exception.
CREATE OR REPLACE FUNCTION guard_staff() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(x'6b697374'::int);
    IF TG_OP = 'INSERT' AND (SELECT count(*) FROM users WHERE role IN ('admin', 'treasury')) < 2 THEN
        RETURN NEW;
    END IF;
    IF NOT EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'staff_access'
            AND c.subject_id = NEW.id AND c.change ->> 'role' = NEW.role) THEN
        RAISE EXCEPTION 'no second officer confirmed user % as %', NEW.id, NEW.role USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
