-- +goose Up
-- Rates of crypto in shillings, the house's fees, and quoted prices. All rows are immutable: a price can be verified
-- forever.

-- A rate follows exactly one other of its pair, and the first follows none: two rates entered at the same moment can't
-- both be the newest, and each rate's distance from the previous one is known.
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
CALL append_only('fx_rates');
CREATE TRIGGER fx_rates_created BEFORE INSERT ON fx_rates FOR EACH ROW EXECUTE FUNCTION check_fx_rate();

-- One version of the fees. Of those that have begun the highest applies; none is retroactive.
CREATE TABLE fee_profiles (
    id                  uuid            PRIMARY KEY,
    scope               text            NOT NULL,
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
    CONSTRAINT fee_profiles_moment CHECK (valid_from >= created_at),
    CONSTRAINT fee_profiles_scope CHECK (scope IN ('transfer', 'offramp')),
    CONSTRAINT fee_profiles_sale CHECK (scope <> 'offramp' OR (fixed = 0 AND basis_points = 0 AND minimum = 0 AND maximum IS NULL))
);
CREATE INDEX fee_profiles_created_idx ON fee_profiles (created_at DESC, id DESC);
CALL append_only('fee_profiles');

-- A quoted price with everything that it was computed from. The terms are copied, so that a quote is self-contained.
CREATE TABLE fx_quotes (
    id              uuid            PRIMARY KEY,
    owner_id        uuid            NOT NULL REFERENCES users (id),
    vendor_id       uuid            REFERENCES users (id),
    purpose         text            NOT NULL,
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
    object_type     text,
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
    CONSTRAINT fx_quotes_replaced CHECK ((status = 'superseded') = (superseded_by IS NOT NULL) AND superseded_by <> id),
    CONSTRAINT fx_quotes_purpose CHECK (purpose IN ('transfer', 'offramp')),
    CONSTRAINT fx_quotes_object_type CHECK (object_type IN ('transfer', 'order')),
    -- Sales without an offer have the price of a quote. A fee in crypto would have to be sent besides the amount.
    CONSTRAINT fx_quotes_sale CHECK (purpose <> 'offramp' OR (side = 'sell' AND fee = 0)),
    CONSTRAINT fx_quotes_purpose_object CHECK (object_type IS NULL OR (object_type = 'order') = (purpose = 'offramp'))
);
CREATE INDEX fx_quotes_owner_idx ON fx_quotes (owner_id, expires_at) WHERE status = 'active';
CREATE INDEX fx_quotes_expiry_idx ON fx_quotes (expires_at) WHERE status = 'active';
CALL moves_by('fx_quotes', 'fx_quote');
CALL never_removed('fx_quotes');
CALL same_columns('fx_quotes',
    'id, owner_id, vendor_id, purpose, side, asset, amount, fiat_currency, rate_id, bid, ask, rate_source, rate_valid_from,
     rate_stale_at, profile_id, profile_version, fee_fixed, fee_points, fee_minimum, fee_maximum, spread_points, formula,
     rate, fiat_amount, fee, total, hash, created_at, expires_at');
CREATE TRIGGER fx_quotes_closed BEFORE UPDATE ON fx_quotes FOR EACH ROW
    WHEN (OLD.status <> 'active')
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER fx_quotes_terms BEFORE INSERT ON fx_quotes FOR EACH ROW EXECUTE FUNCTION check_quote_terms();
CREATE CONSTRAINT TRIGGER fx_quotes_use AFTER UPDATE ON fx_quotes DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.status = 'consumed' AND NEW.object_type = 'transfer') EXECUTE FUNCTION check_quote_use();
CREATE TRIGGER fx_quotes_sale_price BEFORE INSERT ON fx_quotes FOR EACH ROW WHEN (NEW.purpose = 'offramp') EXECUTE FUNCTION check_sale_price();
