-- A user's own limits may be anything up to the role's. Above that, two officers agree to exactly these.
CREATE OR REPLACE FUNCTION guard_user_limits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    general role_limits;
    was     user_limits;
BEGIN
    SELECT l.* INTO general FROM role_limits l JOIN users u ON u.role = l.role WHERE u.id = NEW.user_id;
    SELECT l.* INTO was FROM user_limits l WHERE l.user_id = NEW.user_id; -- an INSERT may turn out to be an UPDATE
    IF ((NEW.per_transaction > general.per_transaction AND NEW.per_transaction > coalesce(was.per_transaction, general.per_transaction))
            OR (NEW.per_day > general.per_day AND NEW.per_day > coalesce(was.per_day, general.per_day))
            OR (NEW.per_month > general.per_month AND NEW.per_month > coalesce(was.per_month, general.per_month)))
        AND NOT EXISTS (SELECT FROM control_changes c WHERE c.applied_in = pg_current_xact_id() AND c.kind = 'user_limits'
            AND c.subject_id = NEW.user_id AND limits_agreed(c.change -> 'limits', NEW.per_transaction, NEW.per_day, NEW.per_month)) THEN
        RAISE EXCEPTION 'no second officer confirmed limits of user % above those of its role', NEW.user_id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
