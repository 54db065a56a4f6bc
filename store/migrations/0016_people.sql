-- +goose Up
-- People: how a session was proven, and until when it lives without its user.

-- assurance_rank orders assurances: a session's never falls.
CREATE FUNCTION assurance_rank(a text) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE a WHEN 'machine' THEN 0 WHEN 'pin' THEN 1 WHEN 'password' THEN 2 WHEN 'passkey' THEN 3 END
$$;

-- is_staff is Role.Staff of the code. A test compares them.
CREATE FUNCTION is_staff(role text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT role IN ('admin', 'otc_officer', 'treasury')
$$;

-- A session's assurance is that of its strongest proof. seen_at is when its user last did something, within a minute;
-- stepped_up_at is when the user last proved itself.
ALTER TABLE session_families
    ADD COLUMN assurance     text        NOT NULL,
    ADD COLUMN seen_at       timestamptz NOT NULL,
    ADD COLUMN stepped_up_at timestamptz NOT NULL,
    ADD CONSTRAINT session_families_assurance CHECK (assurance_rank(assurance) IS NOT NULL);
CALL same_columns('session_families', 'id, user_id, created_at, expires_at');
CALL set_once('session_families', 'revoked_at');
CALL only_grow('session_families', 'seen_at, stepped_up_at');
CALL refuse_when('session_families', '_rises', 'UPDATE', 'assurance_rank(NEW.assurance) < assurance_rank(OLD.assurance)');
CREATE TRIGGER session_families_begun BEFORE INSERT ON session_families FOR EACH ROW EXECUTE FUNCTION check_session();
