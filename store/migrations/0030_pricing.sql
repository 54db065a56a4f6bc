-- +goose Up
-- Rates of crypto in shillings, what the house charges, and the prices that were promised. All of it stays as it
-- was written: a price that was told can be told again for ever.

-- A rate follows exactly one other of its pair, and the first follows none: two that were entered at the same
-- moment can't both be the newest, and how far each went from the last is known.
CREATE TABLE fx_rates (
    id             uuid        PRIMARY KEY,
    base           asset       NOT NULL CHECK (base <> 'KES'),
    quote          asset       NOT NULL CHECK (quote = 'KES'),
    bid            numeric     NOT NULL CHECK (bid > 0 AND bid < 1e15 AND scale(bid) <= 6),
    ask            numeric     NOT NULL CHECK (ask < 1e15 AND scale(ask) <= 6),
    source         text        NOT NULL CHECK (source ~ '^[a-z][a-z0-9_]{0,39}$'),
    valid_from     timestamptz NOT NULL,
    stale_at       timestamptz NOT NULL,
    replaces       uuid        REFERENCES fx_rates (id),
    jump_confirmed boolean     NOT NULL,
    created_by     uuid        REFERENCES users (id),
    created_at     timestamptz NOT NULL,
    CONSTRAINT fx_rates_moment_key UNIQUE (base, quote, valid_from),
    CONSTRAINT fx_rates_line_key UNIQUE NULLS NOT DISTINCT (base, quote, replaces),
    CONSTRAINT fx_rates_sides CHECK (ask >= bid AND ask <= bid * 1.1),
    CONSTRAINT fx_rates_life CHECK (stale_at >= valid_from + interval '1 minute' AND stale_at <= valid_from + interval '7 days'),
    CONSTRAINT fx_rates_moment CHECK (valid_from <= created_at AND created_at < stale_at),
    CONSTRAINT fx_rates_person CHECK ((source = 'admin') = (created_by IS NOT NULL)),
    CONSTRAINT fx_rates_confirmation CHECK (NOT jump_confirmed OR source = 'admin')
);
CREATE INDEX fx_rates_created_idx ON fx_rates (created_at DESC, id DESC);
CREATE TRIGGER fx_rates_immutable BEFORE UPDATE OR DELETE ON fx_rates FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER fx_rates_kept BEFORE TRUNCATE ON fx_rates FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- +goose StatementBegin
CREATE FUNCTION check_fx_rate() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last fx_rates;
BEGIN
    SELECT * INTO last FROM fx_rates WHERE base = NEW.base AND quote = NEW.quote ORDER BY valid_from DESC LIMIT 1;
    IF NEW.replaces IS DISTINCT FROM last.id THEN
        RAISE EXCEPTION 'rate % does not follow the last one of its pair', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF last.id IS NULL THEN
        IF NEW.source <> 'admin' THEN
            RAISE EXCEPTION 'rate % of a source has nothing to be held against', NEW.id USING ERRCODE = 'KV002';
        END IF;
        RETURN NEW;
    END IF;
    IF NEW.valid_from <= last.valid_from THEN
        RAISE EXCEPTION 'rate % is older than the last one', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NOT NEW.jump_confirmed AND (abs(NEW.bid - last.bid) > last.bid * 0.05 OR abs(NEW.ask - last.ask) > last.ask * 0.05) THEN
        RAISE EXCEPTION 'rate % lies far from the last one and nobody confirmed it', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER fx_rates_born BEFORE INSERT ON fx_rates FOR EACH ROW EXECUTE FUNCTION check_fx_rate();

-- One version of what is charged. Of those that have begun the highest is in force; none is retroactive.
CREATE TABLE fee_profiles (
    id                  uuid            PRIMARY KEY,
    scope               text            NOT NULL CHECK (scope IN ('transfer')),
    asset               asset           NOT NULL CHECK (asset IN ('USDT', 'USDC')),
    version             int             NOT NULL CHECK (version > 0),
    fixed               zero_or_more    NOT NULL CHECK (scale(fixed) <= asset_scale(asset)),
    basis_points        int             NOT NULL CHECK (basis_points BETWEEN 0 AND 2000),
    minimum             zero_or_more    NOT NULL CHECK (scale(minimum) <= asset_scale(asset)),
    maximum             zero_or_more    CHECK (scale(maximum) <= asset_scale(asset)),
    spread_basis_points int             NOT NULL CHECK (spread_basis_points BETWEEN 0 AND 2000),
    note                text            NOT NULL CHECK (char_length(note) <= 200),
    valid_from          timestamptz     NOT NULL,
    created_by          uuid            NOT NULL REFERENCES users (id),
    created_at          timestamptz     NOT NULL,
    CONSTRAINT fee_profiles_version_key UNIQUE (scope, asset, version),
    CONSTRAINT fee_profiles_bounds CHECK (maximum IS NULL OR maximum >= minimum),
    CONSTRAINT fee_profiles_moment CHECK (valid_from >= created_at)
);
CREATE INDEX fee_profiles_created_idx ON fee_profiles (created_at DESC, id DESC);
CREATE TRIGGER fee_profiles_immutable BEFORE UPDATE OR DELETE ON fee_profiles FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER fee_profiles_kept BEFORE TRUNCATE ON fee_profiles FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A promised price with everything that it was computed from. The terms are copied, so that a quote stands alone.
CREATE TABLE fx_quotes (
    id              uuid            PRIMARY KEY,
    owner_id        uuid            NOT NULL REFERENCES users (id),
    vendor_id       uuid            REFERENCES users (id),
    purpose         text            NOT NULL CHECK (purpose IN ('transfer')),
    side            text            NOT NULL CHECK (side IN ('buy', 'sell')),
    asset           asset           NOT NULL,
    amount          positive_amount NOT NULL CHECK (scale(amount) <= asset_scale(asset)),
    fiat_currency   asset           NOT NULL CHECK (fiat_currency = 'KES'),
    rate_id         uuid            NOT NULL REFERENCES fx_rates (id),
    bid             numeric         NOT NULL,
    ask             numeric         NOT NULL,
    rate_source     text            NOT NULL,
    rate_valid_from timestamptz     NOT NULL,
    rate_stale_at   timestamptz     NOT NULL,
    profile_id      uuid            REFERENCES fee_profiles (id),
    profile_version int             NOT NULL,
    fee_fixed       zero_or_more    NOT NULL,
    fee_points      int             NOT NULL,
    fee_minimum     zero_or_more    NOT NULL,
    fee_maximum     zero_or_more,
    spread_points   int             NOT NULL,
    formula         text            NOT NULL CHECK (char_length(formula) BETWEEN 1 AND 40),
    rate            numeric         NOT NULL CHECK (rate > 0 AND rate < 1e15 AND scale(rate) <= 6),
    fiat_amount     positive_amount NOT NULL CHECK (fiat_amount = trunc(fiat_amount)),
    fee             zero_or_more    NOT NULL CHECK (scale(fee) <= asset_scale(asset)),
    total           positive_amount NOT NULL,
    hash            text            NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'),
    status          text            NOT NULL,
    created_at      timestamptz     NOT NULL,
    expires_at      timestamptz     NOT NULL,
    consumed_at     timestamptz,
    object_type     text            CHECK (object_type IN ('transfer')),
    object_id       uuid,
    superseded_by   uuid            REFERENCES fx_quotes (id) DEFERRABLE INITIALLY DEFERRED,
    updated_at      timestamptz     NOT NULL,
    version         bigint          NOT NULL DEFAULT 1,
    CONSTRAINT fx_quotes_object_key UNIQUE (object_type, object_id),
    CONSTRAINT fx_quotes_sum CHECK (total = amount + fee),
    CONSTRAINT fx_quotes_life CHECK (expires_at > created_at AND expires_at <= rate_stale_at),
    CONSTRAINT fx_quotes_used CHECK ((status = 'consumed') = (consumed_at IS NOT NULL) AND (status = 'consumed') = (object_id IS NOT NULL)
        AND (object_id IS NULL) = (object_type IS NULL)),
    CONSTRAINT fx_quotes_in_time CHECK (consumed_at IS NULL OR consumed_at < expires_at),
    CONSTRAINT fx_quotes_replaced CHECK ((status = 'superseded') = (superseded_by IS NOT NULL) AND superseded_by <> id)
);
CREATE INDEX fx_quotes_owner_idx ON fx_quotes (owner_id, expires_at) WHERE status = 'active';
CREATE INDEX fx_quotes_expiry_idx ON fx_quotes (expires_at) WHERE status = 'active';
CREATE TRIGGER fx_quotes_born BEFORE INSERT ON fx_quotes FOR EACH ROW EXECUTE FUNCTION check_transition('fx_quote');
CREATE TRIGGER fx_quotes_moves BEFORE UPDATE ON fx_quotes FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION check_transition('fx_quote');
CREATE TRIGGER fx_quotes_same BEFORE UPDATE ON fx_quotes FOR EACH ROW
    WHEN (OLD.status <> 'active'
          OR (OLD.id, OLD.owner_id, OLD.vendor_id, OLD.purpose, OLD.side, OLD.asset, OLD.amount, OLD.fiat_currency, OLD.rate_id, OLD.bid, OLD.ask,
              OLD.rate_source, OLD.rate_valid_from, OLD.rate_stale_at, OLD.profile_id, OLD.profile_version, OLD.fee_fixed, OLD.fee_points,
              OLD.fee_minimum, OLD.fee_maximum, OLD.spread_points, OLD.formula, OLD.rate, OLD.fiat_amount, OLD.fee, OLD.total, OLD.hash,
              OLD.created_at, OLD.expires_at)
          IS DISTINCT FROM
             (NEW.id, NEW.owner_id, NEW.vendor_id, NEW.purpose, NEW.side, NEW.asset, NEW.amount, NEW.fiat_currency, NEW.rate_id, NEW.bid, NEW.ask,
              NEW.rate_source, NEW.rate_valid_from, NEW.rate_stale_at, NEW.profile_id, NEW.profile_version, NEW.fee_fixed, NEW.fee_points,
              NEW.fee_minimum, NEW.fee_maximum, NEW.spread_points, NEW.formula, NEW.rate, NEW.fiat_amount, NEW.fee, NEW.total, NEW.hash,
              NEW.created_at, NEW.expires_at))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER fx_quotes_kept BEFORE DELETE ON fx_quotes FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER fx_quotes_all_kept BEFORE TRUNCATE ON fx_quotes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The terms of a quote are what the rate and the profile say that it names.
-- +goose StatementBegin
CREATE FUNCTION check_quote_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM fx_rates r WHERE r.id = NEW.rate_id AND r.base = NEW.asset AND r.quote = NEW.fiat_currency AND r.bid = NEW.bid
            AND r.ask = NEW.ask AND r.source = NEW.rate_source AND r.valid_from = NEW.rate_valid_from AND r.stale_at = NEW.rate_stale_at) THEN
        RAISE EXCEPTION 'quote % has other terms than its rate', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.profile_id IS NULL THEN
        IF (NEW.profile_version, NEW.fee_fixed, NEW.fee_points, NEW.fee_minimum, NEW.spread_points, NEW.fee) IS DISTINCT FROM (0, 0, 0, 0, 0, 0) THEN
            RAISE EXCEPTION 'quote % charges by no profile', NEW.id USING ERRCODE = 'KV002';
        END IF;
    ELSIF NOT EXISTS (SELECT FROM fee_profiles f WHERE f.id = NEW.profile_id AND f.scope = NEW.purpose AND f.asset = NEW.asset
            AND f.version = NEW.profile_version AND f.fixed = NEW.fee_fixed AND f.basis_points = NEW.fee_points AND f.minimum = NEW.fee_minimum
            AND f.maximum IS NOT DISTINCT FROM NEW.fee_maximum AND f.spread_basis_points = NEW.spread_points) THEN
        RAISE EXCEPTION 'quote % has other terms than its fee profile', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER fx_quotes_terms BEFORE INSERT ON fx_quotes FOR EACH ROW EXECUTE FUNCTION check_quote_terms();

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('fx_quote', '', 'active'),
    ('fx_quote', 'active', 'consumed'),
    ('fx_quote', 'active', 'expired'),
    ('fx_quote', 'active', 'superseded');

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT ON fx_rates, fee_profiles TO kivuko_app;
        GRANT SELECT, INSERT, UPDATE (status, consumed_at, object_type, object_id, superseded_by, updated_at, version) ON fx_quotes TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
