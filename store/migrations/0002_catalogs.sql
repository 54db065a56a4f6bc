-- +goose Up
-- The shared catalogs: countries (ISO 3166-1) and fiat currencies (ISO 4217). The rows come from the embedded tables
-- of package catalogdata, which also describes their ids: fixed ids in UUIDv7 layout, derived from the code, so that a
-- country has the same id in every database.

CREATE TABLE fiat_currencies (
    id           uuid        NOT NULL,
    code         text        NOT NULL,
    name         text        NOT NULL,
    numeric_code text        NOT NULL,
    symbol       text        NOT NULL,
    decimals     smallint    NOT NULL,
    sort_order   integer     NOT NULL DEFAULT 1000,
    is_active    boolean     NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT fiat_currencies_pkey PRIMARY KEY (id),
    CONSTRAINT fiat_currencies_code_key UNIQUE (code),
    CONSTRAINT fiat_currencies_numeric_code_key UNIQUE (numeric_code),
    CONSTRAINT fiat_currencies_code_check CHECK (code ~ '^[A-Z]{3}$'),
    CONSTRAINT fiat_currencies_numeric_code_check CHECK (numeric_code ~ '^[0-9]{3}$'),
    CONSTRAINT fiat_currencies_name_check CHECK (name = btrim(name) AND char_length(name) BETWEEN 1 AND 120),
    CONSTRAINT fiat_currencies_symbol_check CHECK (symbol = btrim(symbol) AND char_length(symbol) BETWEEN 1 AND 8),
    CONSTRAINT fiat_currencies_decimals_check CHECK (decimals BETWEEN 0 AND 4),
    CONSTRAINT fiat_currencies_sort_order_check CHECK (sort_order BETWEEN 0 AND 100000),
    CONSTRAINT fiat_currencies_times_check CHECK (updated_at >= created_at)
);

CREATE TABLE countries (
    id                    uuid        NOT NULL,
    display_name          text        NOT NULL,
    official_name         text        NOT NULL,
    alpha2_code           text        NOT NULL,
    alpha3_code           text        NOT NULL,
    numeric_code          text        NOT NULL,
    phone_code            text        NOT NULL,
    nationality           text        NOT NULL,
    region                text        NOT NULL,
    subregion             text        NOT NULL,
    -- NULL where a country has no currency of its own (Antarctica).
    default_fiat_currency text,
    supports_momo         boolean     NOT NULL DEFAULT false,
    supports_bank_payout  boolean     NOT NULL DEFAULT false,
    sort_order            integer     NOT NULL DEFAULT 1000,
    is_active             boolean     NOT NULL DEFAULT false,
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    CONSTRAINT countries_pkey PRIMARY KEY (id),
    CONSTRAINT countries_display_name_key UNIQUE (display_name),
    CONSTRAINT countries_alpha2_code_key UNIQUE (alpha2_code),
    CONSTRAINT countries_alpha3_code_key UNIQUE (alpha3_code),
    CONSTRAINT countries_numeric_code_key UNIQUE (numeric_code),
    CONSTRAINT countries_default_fiat_currency_fkey FOREIGN KEY (default_fiat_currency) REFERENCES fiat_currencies (code),
    CONSTRAINT countries_alpha2_code_check CHECK (alpha2_code ~ '^[A-Z]{2}$'),
    CONSTRAINT countries_alpha3_code_check CHECK (alpha3_code ~ '^[A-Z]{3}$'),
    CONSTRAINT countries_numeric_code_check CHECK (numeric_code ~ '^[0-9]{3}$'),
    -- ITU-T E.164: a plus, no leading zero; country code and, in the North American plan, area code.
    CONSTRAINT countries_phone_code_check CHECK (phone_code ~ '^\+[1-9][0-9]{0,6}$'),
    CONSTRAINT countries_display_name_check CHECK (display_name = btrim(display_name) AND char_length(display_name) BETWEEN 1 AND 120),
    CONSTRAINT countries_official_name_check CHECK (official_name = btrim(official_name) AND char_length(official_name) BETWEEN 1 AND 120),
    CONSTRAINT countries_nationality_check CHECK (nationality = btrim(nationality) AND char_length(nationality) BETWEEN 1 AND 120),
    CONSTRAINT countries_region_check CHECK (char_length(region) BETWEEN 1 AND 120),
    CONSTRAINT countries_subregion_check CHECK (char_length(subregion) BETWEEN 1 AND 120),
    CONSTRAINT countries_sort_order_check CHECK (sort_order BETWEEN 0 AND 100000),
    CONSTRAINT countries_rail_currency_check CHECK (default_fiat_currency IS NOT NULL OR NOT (supports_momo OR supports_bank_payout)),
    CONSTRAINT countries_times_check CHECK (updated_at >= created_at)
);
CREATE INDEX countries_default_fiat_currency_idx ON countries (default_fiat_currency);

-- Rows that an admin deleted from a catalog. Seeding skips these codes, so that a deletion outlasts the next start.
CREATE TABLE catalog_removals (
    catalog    text        NOT NULL,
    code       text        NOT NULL,
    removed_at timestamptz NOT NULL,
    CONSTRAINT catalog_removals_pkey PRIMARY KEY (catalog, code),
    CONSTRAINT catalog_removals_catalog_check CHECK (catalog IN ('country', 'fiat_currency')),
    CONSTRAINT catalog_removals_code_check CHECK (code ~ '^[A-Z]{2,3}$')
);
