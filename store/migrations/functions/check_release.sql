-- A release is written with the terms of its object, and passes only with as many officers as its value needs together with
-- the running sums, and when its destination has rested or two approved; see JudgeRelease in the code. Its own time can't
-- hide it from the sums, nor the others from it, nor shorten the rest.
CREATE OR REPLACE FUNCTION check_release() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sums   record;
    rule   approval_rules;
    rest   release_policy;
    total  numeric;
    needed int;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.passed_at IS NOT NULL OR NEW.ended_at IS NOT NULL OR NOT release_matches(NEW) THEN
            RAISE EXCEPTION 'release % does not match its %', NEW.id, NEW.purpose USING ERRCODE = 'KV002';
        END IF;
        PERFORM lock_release(NEW);
        NEW.counts_until := 'infinity';
        RETURN NEW;
    END IF;
    IF OLD.passed_at IS NULL AND NEW.passed_at IS NOT NULL THEN
        PERFORM lock_release(NEW);
        SELECT * INTO STRICT rule FROM approval_rules WHERE object_type = 'transfer' FOR SHARE;
        SELECT * INTO STRICT rest FROM release_policy;
        SELECT * INTO sums FROM release_sums(NEW, least(NEW.passed_at, clock_timestamp()));
        total := NEW.value + greatest(sums.wallet, sums.owner, sums.requester, sums.recipient);
        needed := CASE WHEN NEW.own THEN 0 WHEN total > rule.two_above THEN 2 WHEN total > rule.one_above THEN 1 ELSE 0 END;
        IF NEW.house THEN
            needed := greatest(needed, 1);
        END IF;
        IF NOT NEW.inside AND NEW.value + sums.recipient > rest.rest_above AND least(NEW.passed_at, clock_timestamp()) < make_interval(secs => rest.rest_seconds)
                + (SELECT min(k.opened_at) FROM releases k WHERE k.recipient = NEW.recipient AND (k.owner_id = NEW.owner_id OR k.house AND NEW.house)) THEN
            needed := 2;
        END IF;
        IF release_approvals(NEW) < greatest(needed, NEW.officers) THEN
            RAISE EXCEPTION 'release % of % % lacks officers', NEW.id, NEW.purpose, NEW.object_id USING ERRCODE = 'KV006';
        END IF;
    ELSIF OLD.passed_at IS NOT NULL AND (NEW.officers, NEW.rests_until) IS DISTINCT FROM (OLD.officers, OLD.rests_until) THEN
        RAISE EXCEPTION 'release % has passed', NEW.id USING ERRCODE = 'KV002';
    END IF;
    NEW.counts_until := CASE WHEN NEW.ended_at IS NOT NULL THEN '-infinity' WHEN NEW.passed_at IS NULL THEN 'infinity'
        ELSE greatest(NEW.passed_at, clock_timestamp()) + interval '24 hours' END;
    RETURN NEW;
END $$;
