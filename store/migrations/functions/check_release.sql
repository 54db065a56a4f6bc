-- A release is written with the terms of its object, and passes only while it still has them, with as many officers as its
-- value needs together with the running sums, and when its destination has rested or two approved; see JudgeRelease in the
-- code. Its own time can't hide it from the sums, nor the others from it, nor shorten the rest. A refund by mobile money that
-- an officer requests is not even opened with fewer officers: it ends its order. One by rule waits for them, because it books
-- money that came. One that never passed counts for a day from the end of its refund: an earlier try has paid it.
CREATE OR REPLACE FUNCTION check_release() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    plan   release_purposes;
    rest   release_policy;
    needed int;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.passed_at IS NOT NULL OR NEW.ended_at IS NOT NULL OR NOT release_matches(NEW) THEN
            RAISE EXCEPTION 'release % does not match its %', NEW.id, NEW.purpose USING ERRCODE = 'KV002';
        END IF;
        PERFORM lock_release(NEW);
        NEW.passed_in := NULL;
        NEW.counts_until := 'infinity';
        NEW.at_opening := NULL;
        NEW.at_opening := release_officers(NEW, clock_timestamp());
        NEW.officers := NEW.at_opening;
        IF NEW.at_opening > 0 AND EXISTS (SELECT FROM refunds f WHERE NEW.purpose = 'refund' AND f.id = NEW.object_id AND f.rail = 'momo'
                    AND (f.requested_by IS NOT NULL OR f.exception_id IS NULL))
                AND NOT EXISTS (SELECT FROM releases o WHERE o.purpose = NEW.purpose AND o.object_id = NEW.object_id)
                AND release_approvals(NEW) < NEW.at_opening THEN
            RAISE EXCEPTION 'no second officer confirmed refund %', NEW.object_id USING ERRCODE = 'KV006';
        END IF;
        RETURN NEW;
    END IF;
    NEW.passed_in := OLD.passed_in;
    IF OLD.passed_at IS NULL AND NEW.passed_at IS NOT NULL THEN
        IF NEW.purpose IN ('refund', 'payout', 'withdrawal', 'swap', 'proposal') AND NOT release_matches(NEW) THEN
            RAISE EXCEPTION 'release % does not match its % any more', NEW.id, NEW.purpose USING ERRCODE = 'KV002';
        END IF;
        PERFORM lock_release(NEW);
        SELECT * INTO STRICT plan FROM release_purposes p WHERE p.purpose = NEW.purpose;
        PERFORM FROM approval_rules WHERE object_type = plan.rule FOR SHARE;
        SELECT * INTO STRICT rest FROM release_policy;
        needed := release_officers(NEW, least(NEW.passed_at, clock_timestamp()));
        IF plan.rests = '' AND NEW.exempt = '' AND (plan.always OR NOT NEW.inside) AND NEW.value + (SELECT s.recipient FROM release_sums(NEW, least(NEW.passed_at, clock_timestamp())) s)
                > (CASE WHEN plan.always THEN 0 ELSE rest.rest_above END)
                AND least(NEW.passed_at, clock_timestamp()) < make_interval(secs => rest.rest_seconds) + release_known(NEW) THEN
            needed := greatest(needed, 2);
        END IF;
        IF release_approvals(NEW) < greatest(needed, NEW.officers) OR EXISTS (SELECT FROM approvals a WHERE NEW.purpose = 'funding'
                AND a.object_type = 'order' AND a.object_id = NEW.object_id AND a.action = 'reject' AND a.digest = NEW.digest) THEN
            RAISE EXCEPTION 'release % of % % lacks officers', NEW.id, NEW.purpose, NEW.object_id USING ERRCODE = 'KV006';
        END IF;
        NEW.passed_in := pg_current_xact_id();
    ELSIF OLD.passed_at IS NOT NULL AND (NEW.officers, NEW.rests_until) IS DISTINCT FROM (OLD.officers, OLD.rests_until) THEN
        RAISE EXCEPTION 'release % has passed', NEW.id USING ERRCODE = 'KV002';
    END IF;
    NEW.counts_until := CASE WHEN NEW.ended_at IS NOT NULL THEN '-infinity'
        WHEN NEW.passed_at IS NULL AND NOT EXISTS (SELECT FROM refunds f WHERE NEW.purpose = 'refund' AND f.id = NEW.object_id AND f.status = 'completed') THEN 'infinity'
        ELSE greatest(NEW.passed_at, clock_timestamp()) + interval '24 hours' END;
    RETURN NEW;
END $$;
