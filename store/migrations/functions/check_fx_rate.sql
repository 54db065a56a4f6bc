-- A rate follows exactly the last one of its pair. One person's is near the one that a source gave within the hour; any other, and the
-- first, two officers agree. A source doesn't jump, and stays near the last rate that two officers agreed: otherwise the process that
-- enters its rates could lead the price anywhere in small steps. Whoever writes a row chooses its times, so no span of time bounds them.
-- Of the processes the API alone enters rates of persons, and the flows alone those of a source: with both, one of them could lead the
-- source away and hold its own rate against that.
CREATE OR REPLACE FUNCTION check_fx_rate() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last fx_rates;
    said fx_rates;
    agreed fx_rates;
BEGIN
    IF current_user = 'kivuko_api' AND NEW.source <> 'admin' OR current_user = 'kivuko_flows' AND NEW.source = 'admin' THEN
        RAISE EXCEPTION '% enters no rate of %', current_user, NEW.source USING ERRCODE = '42501';
    END IF;
    SELECT * INTO last FROM fx_rates WHERE base = NEW.base AND quote = NEW.quote ORDER BY valid_from DESC LIMIT 1;
    IF NEW.replaces IS DISTINCT FROM last.id THEN
        RAISE EXCEPTION 'rate % does not follow the last one of its pair', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.valid_from <= last.valid_from THEN
        RAISE EXCEPTION 'rate % is older than the last one', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.jump_confirmed THEN
        PERFORM FROM control_changes c WHERE c.kind = 'fx_rate' AND c.applied_in = pg_current_xact_id() AND c.change ->> 'id' = NEW.id::text
            AND c.change ->> 'base' = NEW.base AND (c.change ->> 'bid')::numeric = NEW.bid AND (c.change ->> 'ask')::numeric = NEW.ask;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'no second officer confirmed rate %', NEW.id USING ERRCODE = 'KV006';
        END IF;
        RETURN NEW;
    END IF;
    IF NEW.source <> 'admin' THEN
        IF last.id IS NULL THEN
            RAISE EXCEPTION 'rate % of a source has no earlier rate to compare with', NEW.id USING ERRCODE = 'KV002';
        END IF;
        IF abs(NEW.bid - last.bid) > last.bid * 0.05 OR abs(NEW.ask - last.ask) > last.ask * 0.05 THEN
            RAISE EXCEPTION 'rate % is too far from rate %', NEW.id, last.id USING ERRCODE = 'KV002';
        END IF;
        SELECT * INTO agreed FROM fx_rates WHERE base = NEW.base AND quote = NEW.quote AND jump_confirmed ORDER BY valid_from DESC LIMIT 1;
        IF agreed.id IS NULL OR abs(NEW.bid - agreed.bid) > agreed.bid * 0.1 OR abs(NEW.ask - agreed.ask) > agreed.ask * 0.1 THEN
            RAISE EXCEPTION 'rate % is too far from the last one that two officers agreed', NEW.id USING ERRCODE = 'KV006';
        END IF;
        RETURN NEW;
    END IF;
    SELECT * INTO said FROM fx_rates WHERE base = NEW.base AND quote = NEW.quote AND source <> 'admin' ORDER BY valid_from DESC LIMIT 1;
    IF said.id IS NULL OR said.valid_from < NEW.created_at - interval '1 hour'
        OR abs(NEW.bid - said.bid) > said.bid * 0.02 OR abs(NEW.ask - said.ask) > said.ask * 0.02 THEN
        RAISE EXCEPTION 'rate % of one person is not near the source''s', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
