-- A release leaves the running sums only with an object that ended and moves nothing, or of which nothing is on its way, or when
-- another one takes its place.
CREATE OR REPLACE FUNCTION check_release_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM releases o WHERE o.purpose = NEW.purpose AND o.object_id = NEW.object_id AND o.ended_at IS NULL) THEN
        RETURN NULL; -- which counts instead
    END IF;
    IF may_have_left(NEW.purpose, NEW.object_id) THEN
        RAISE EXCEPTION 'the % of release % may still move money', NEW.purpose, NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
