-- A changed number or address is either gone or proven in the same change, and a proven one goes only by its owner's new one.
CREATE OR REPLACE FUNCTION check_contacts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.email IS DISTINCT FROM NEW.email AND NOT coalesce(CASE WHEN NEW.email IS NULL THEN OLD.email_proven_at IS NULL
            ELSE NEW.email_proven_at IS DISTINCT FROM OLD.email_proven_at AND NEW.email_proven_at IS NOT NULL END, false) THEN
        RAISE EXCEPTION 'the e-mail address of user % changes without a proof', NEW.id USING ERRCODE = 'KV006';
    END IF;
    IF OLD.phone_number IS DISTINCT FROM NEW.phone_number AND NOT coalesce(CASE WHEN NEW.phone_number IS NULL THEN OLD.phone_proven_at IS NULL
            ELSE NEW.phone_proven_at IS DISTINCT FROM OLD.phone_proven_at AND NEW.phone_proven_at IS NOT NULL END, false) THEN
        RAISE EXCEPTION 'the phone number of user % changes without a proof', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
