-- Staff log in with a password or a passkey, never with a PIN.
CREATE OR REPLACE FUNCTION check_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.assurance IN ('machine', 'pin') AND EXISTS (SELECT FROM users WHERE id = NEW.user_id AND is_staff(role)) THEN
        RAISE EXCEPTION 'a session of staff begins with a %', NEW.assurance USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
