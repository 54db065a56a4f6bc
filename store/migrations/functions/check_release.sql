-- A release is written with the terms of its object, and passes only with as many officers as its value needs together with
-- the running sums; see JudgeRelease in the code.
CREATE OR REPLACE FUNCTION check_release() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sums   record;
    rule   approval_rules;
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
        SELECT * INTO sums FROM release_sums(NEW, NEW.passed_at);
        total := NEW.value + greatest(sums.wallet, sums.owner, sums.requester, sums.recipient);
        needed := CASE WHEN NEW.own THEN 0 WHEN total > rule.two_above THEN 2 WHEN total > rule.one_above THEN 1 ELSE 0 END;
        IF NEW.house THEN
            needed := greatest(needed, 1);
        END IF;
        IF NEW.officers < needed OR release_approvals(NEW) < NEW.officers OR (NEW.rests_until > NEW.passed_at AND release_approvals(NEW) < 2) THEN
            RAISE EXCEPTION 'release % of % % lacks officers', NEW.id, NEW.purpose, NEW.object_id USING ERRCODE = 'KV006';
        END IF;
    ELSIF OLD.passed_at IS NOT NULL AND (NEW.officers, NEW.rests_until) IS DISTINCT FROM (OLD.officers, OLD.rests_until) THEN
        RAISE EXCEPTION 'release % has passed', NEW.id USING ERRCODE = 'KV002';
    END IF;
    NEW.counts_until := CASE WHEN NEW.ended_at IS NOT NULL THEN '-infinity' WHEN NEW.passed_at IS NULL THEN 'infinity' ELSE NEW.passed_at + interval '24 hours' END;
    RETURN NEW;
END $$;
