-- +goose Up
-- Fees of every scope, for all or for one merchant, asset, network or method, and the days on which banks settle.

-- What else needs two officers.
ALTER TABLE control_changes DROP CONSTRAINT control_changes_kind;
ALTER TABLE control_changes ADD CONSTRAINT control_changes_kind CHECK (kind IN ('house_limits', 'user_limits', 'staff_access', 'momo_terms',
    'treasury_allocation', 'float_move', 'exception_decision', 'payout_attestation', 'order_address', 'refund_decision', 'database_release',
    'deny_removal', 'fee_profile', 'fx_rate', 'breaker_closed', 'quarantine_settled', 'freeze_lift', 'nonce_reopened', 'escrow_policy',
    'bank_account', 'journal_entry', 'bank_day'));

-- What the profiles of a scope may be for.
CREATE TABLE fee_scopes (
    scope   text    PRIMARY KEY,
    desk    boolean NOT NULL, -- its operations may be of shillings alone
    methods text[]  NOT NULL
);
INSERT INTO fee_scopes (scope, desk, methods) VALUES
    ('onramp', false, '{momo}'),
    ('offramp', false, '{momo, bank}'),
    ('transfer', false, '{}'),
    ('otc_deposit', true, '{momo, bank, c2b}'),
    ('otc_withdrawal', true, '{momo, bank, chain}'),
    ('swap', false, '{}');
CALL append_only('fee_scopes');

-- A profile is a version of a line: a scope, and one choice of merchant, asset, network and method, of which NULL is every one. A fee
-- of a transfer or a swap is taken in the asset itself, others in shillings.
ALTER TABLE fee_profiles DROP CONSTRAINT fee_profiles_asset_check;
ALTER TABLE fee_profiles DROP CONSTRAINT fee_profiles_scope;
ALTER TABLE fee_profiles DROP CONSTRAINT fee_profiles_sale;
ALTER TABLE fee_profiles DROP CONSTRAINT fee_profiles_version_key;
ALTER TABLE fee_profiles ALTER COLUMN asset DROP NOT NULL;
ALTER TABLE fee_profiles
    ADD COLUMN merchant_id uuid    REFERENCES users (id),
    ADD COLUMN network     network,
    ADD COLUMN method      text,
    ADD COLUMN retired     boolean NOT NULL DEFAULT false, -- the line ends
    ADD COLUMN currency    asset   GENERATED ALWAYS AS (CASE WHEN scope IN ('transfer', 'swap') THEN asset ELSE 'KES'::asset END) STORED,
    ADD CONSTRAINT fee_profiles_scope FOREIGN KEY (scope) REFERENCES fee_scopes (scope),
    ADD CONSTRAINT fee_profiles_asset CHECK (asset IN ('USDT', 'USDC', 'KES') AND (asset <> 'KES' OR network IS NULL)),
    ADD CONSTRAINT fee_profiles_version_key UNIQUE NULLS NOT DISTINCT (scope, merchant_id, asset, network, method, version),
    ADD CONSTRAINT fee_profiles_currency CHECK (CASE WHEN currency IS NULL THEN fixed = 0 AND minimum = 0 AND maximum IS NULL
        ELSE scale(fixed) <= asset_scale(currency) AND scale(minimum) <= asset_scale(currency) AND scale(maximum) <= asset_scale(currency) END),
    ADD CONSTRAINT fee_profiles_orders CHECK (scope NOT IN ('onramp', 'offramp')
        OR (fixed = 0 AND basis_points = 0 AND minimum = 0 AND maximum IS NULL)),
    ADD CONSTRAINT fee_profiles_retired CHECK (NOT retired
        OR (fixed = 0 AND basis_points = 0 AND minimum = 0 AND maximum IS NULL AND spread_basis_points = 0));
-- It compares each term with what two officers agreed, in place of fee_profiles_agreed, which compared the id.
DROP TRIGGER fee_profiles_agreed ON fee_profiles;
CREATE TRIGGER fee_profiles_line BEFORE INSERT ON fee_profiles FOR EACH ROW EXECUTE FUNCTION check_fee_profile();

-- The days of the week on which banks in Kenya settle, as PostgreSQL counts them: 0 is Sunday.
CREATE TABLE bank_week (
    weekday int     PRIMARY KEY CHECK (weekday BETWEEN 0 AND 6),
    is_open boolean NOT NULL
);
INSERT INTO bank_week (weekday, is_open) VALUES (0, false), (1, true), (2, true), (3, true), (4, true), (5, true), (6, false);
CALL append_only('bank_week');

-- The days that are not as their day of the week: public holidays, and their corrections. The latest entry of a day counts. Those
-- without a change came with the schema; the others two officers entered.
CREATE TABLE bank_days (
    day        date        NOT NULL,
    entry      int         NOT NULL CHECK (entry > 0),
    is_open    boolean     NOT NULL,
    name       text        NOT NULL CHECK (char_length(name) BETWEEN 1 AND 80),
    change_id  uuid        REFERENCES control_changes (id),
    entered_at timestamptz NOT NULL,
    PRIMARY KEY (day, entry),
    CONSTRAINT bank_days_change_key UNIQUE (change_id)
);
CALL append_only('bank_days');

-- The public holidays of Kenya with fixed dates, and Easter, by the Public Holidays Act (Cap. 110). One that falls on a Sunday is kept
-- on the next day that is none itself (section 4 of the act).
INSERT INTO bank_days (day, entry, is_open, name, entered_at)
SELECT day::date, 1, false, name, '2026-01-01' FROM (VALUES
    ('2026-01-01', 'New Year''s Day'),
    ('2026-04-03', 'Good Friday'),
    ('2026-04-06', 'Easter Monday'),
    ('2026-05-01', 'Labour Day'),
    ('2026-06-01', 'Madaraka Day'),
    ('2026-10-10', 'Mazingira Day'),
    ('2026-10-20', 'Mashujaa Day'),
    ('2026-12-12', 'Jamhuri Day'),
    ('2026-12-25', 'Christmas Day'),
    ('2026-12-26', 'Boxing Day'),
    ('2027-01-01', 'New Year''s Day'),
    ('2027-03-26', 'Good Friday'),
    ('2027-03-29', 'Easter Monday'),
    ('2027-05-01', 'Labour Day'),
    ('2027-06-01', 'Madaraka Day'),
    ('2027-10-10', 'Mazingira Day'),
    ('2027-10-11', 'Mazingira Day (observed)'),
    ('2027-10-20', 'Mashujaa Day'),
    ('2027-12-12', 'Jamhuri Day'),
    ('2027-12-13', 'Jamhuri Day (observed)'),
    ('2027-12-25', 'Christmas Day'),
    ('2027-12-26', 'Boxing Day'),
    ('2027-12-27', 'Boxing Day (observed)'),
    ('2028-01-01', 'New Year''s Day'),
    ('2028-04-14', 'Good Friday'),
    ('2028-04-17', 'Easter Monday'),
    ('2028-05-01', 'Labour Day'),
    ('2028-06-01', 'Madaraka Day'),
    ('2028-10-10', 'Mazingira Day'),
    ('2028-10-20', 'Mashujaa Day'),
    ('2028-12-12', 'Jamhuri Day'),
    ('2028-12-25', 'Christmas Day'),
    ('2028-12-26', 'Boxing Day'),
    ('2029-01-01', 'New Year''s Day'),
    ('2029-03-30', 'Good Friday'),
    ('2029-04-02', 'Easter Monday'),
    ('2029-05-01', 'Labour Day'),
    ('2029-06-01', 'Madaraka Day'),
    ('2029-10-10', 'Mazingira Day'),
    ('2029-10-20', 'Mashujaa Day'),
    ('2029-12-12', 'Jamhuri Day'),
    ('2029-12-25', 'Christmas Day'),
    ('2029-12-26', 'Boxing Day'),
    ('2030-01-01', 'New Year''s Day'),
    ('2030-04-19', 'Good Friday'),
    ('2030-04-22', 'Easter Monday'),
    ('2030-05-01', 'Labour Day'),
    ('2030-06-01', 'Madaraka Day'),
    ('2030-10-10', 'Mazingira Day'),
    ('2030-10-20', 'Mashujaa Day'),
    ('2030-10-21', 'Mashujaa Day (observed)'),
    ('2030-12-12', 'Jamhuri Day'),
    ('2030-12-25', 'Christmas Day'),
    ('2030-12-26', 'Boxing Day'),
    ('2031-01-01', 'New Year''s Day'),
    ('2031-04-11', 'Good Friday'),
    ('2031-04-14', 'Easter Monday'),
    ('2031-05-01', 'Labour Day'),
    ('2031-06-01', 'Madaraka Day'),
    ('2031-06-02', 'Madaraka Day (observed)'),
    ('2031-10-10', 'Mazingira Day'),
    ('2031-10-20', 'Mashujaa Day'),
    ('2031-12-12', 'Jamhuri Day'),
    ('2031-12-25', 'Christmas Day'),
    ('2031-12-26', 'Boxing Day'),
    ('2032-01-01', 'New Year''s Day'),
    ('2032-03-26', 'Good Friday'),
    ('2032-03-29', 'Easter Monday'),
    ('2032-05-01', 'Labour Day'),
    ('2032-06-01', 'Madaraka Day'),
    ('2032-10-10', 'Mazingira Day'),
    ('2032-10-11', 'Mazingira Day (observed)'),
    ('2032-10-20', 'Mashujaa Day'),
    ('2032-12-12', 'Jamhuri Day'),
    ('2032-12-13', 'Jamhuri Day (observed)'),
    ('2032-12-25', 'Christmas Day'),
    ('2032-12-26', 'Boxing Day'),
    ('2032-12-27', 'Boxing Day (observed)'),
    ('2033-01-01', 'New Year''s Day'),
    ('2033-04-15', 'Good Friday'),
    ('2033-04-18', 'Easter Monday'),
    ('2033-05-01', 'Labour Day'),
    ('2033-05-02', 'Labour Day (observed)'),
    ('2033-06-01', 'Madaraka Day'),
    ('2033-10-10', 'Mazingira Day'),
    ('2033-10-20', 'Mashujaa Day'),
    ('2033-12-12', 'Jamhuri Day'),
    ('2033-12-25', 'Christmas Day'),
    ('2033-12-26', 'Boxing Day'),
    ('2033-12-27', 'Christmas Day (observed)'),
    ('2034-01-01', 'New Year''s Day'),
    ('2034-01-02', 'New Year''s Day (observed)'),
    ('2034-04-07', 'Good Friday'),
    ('2034-04-10', 'Easter Monday'),
    ('2034-05-01', 'Labour Day'),
    ('2034-06-01', 'Madaraka Day'),
    ('2034-10-10', 'Mazingira Day'),
    ('2034-10-20', 'Mashujaa Day'),
    ('2034-12-12', 'Jamhuri Day'),
    ('2034-12-25', 'Christmas Day'),
    ('2034-12-26', 'Boxing Day'),
    ('2035-01-01', 'New Year''s Day'),
    ('2035-03-23', 'Good Friday'),
    ('2035-03-26', 'Easter Monday'),
    ('2035-05-01', 'Labour Day'),
    ('2035-06-01', 'Madaraka Day'),
    ('2035-10-10', 'Mazingira Day'),
    ('2035-10-20', 'Mashujaa Day'),
    ('2035-12-12', 'Jamhuri Day'),
    ('2035-12-25', 'Christmas Day'),
    ('2035-12-26', 'Boxing Day'),
    ('2036-01-01', 'New Year''s Day'),
    ('2036-04-11', 'Good Friday'),
    ('2036-04-14', 'Easter Monday'),
    ('2036-05-01', 'Labour Day'),
    ('2036-06-01', 'Madaraka Day'),
    ('2036-06-02', 'Madaraka Day (observed)'),
    ('2036-10-10', 'Mazingira Day'),
    ('2036-10-20', 'Mashujaa Day'),
    ('2036-12-12', 'Jamhuri Day'),
    ('2036-12-25', 'Christmas Day'),
    ('2036-12-26', 'Boxing Day')
) AS holiday (day, name);
CREATE TRIGGER bank_days_agreed BEFORE INSERT ON bank_days FOR EACH ROW EXECUTE FUNCTION check_bank_day();

-- Quotes of either amount: of crypto, or of shillings. Since the second formula a fee in shillings is inside of fiat_amount; a fee in
-- crypto is on top of the amount. What is locked over night outlives its rate. Rows without the new columns are of the first formula.
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_sum;
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_life;
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_purpose;
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_object_type;
ALTER TABLE fx_quotes DROP CONSTRAINT fx_quotes_purpose_object;
ALTER TABLE fx_quotes
    ADD COLUMN fiat_given   positive_amount CHECK (fiat_given = trunc(fiat_given)), -- NULL: the amount of crypto was given
    ADD COLUMN network      network,
    ADD COLUMN method       text,
    ADD COLUMN fee_currency asset GENERATED ALWAYS AS (CASE WHEN purpose = 'transfer' OR formula = 'kivuko-price-1' THEN asset ELSE 'KES'::asset END) STORED,
    ADD CONSTRAINT fx_quotes_formula CHECK (formula <> 'kivuko-price-1' OR num_nonnulls(fiat_given, network, method) = 0),
    ADD CONSTRAINT fx_quotes_sum CHECK (total = amount + CASE WHEN fee_currency = asset THEN fee ELSE 0 END),
    ADD CONSTRAINT fx_quotes_fee CHECK (scale(fee) <= asset_scale(fee_currency) AND (fee_currency = asset OR side = 'sell' OR fee < fiat_amount)),
    ADD CONSTRAINT fx_quotes_given CHECK (fiat_given IS NULL OR side = 'sell' OR fiat_amount = fiat_given),
    ADD CONSTRAINT fx_quotes_life CHECK (expires_at > created_at AND (expires_at <= rate_stale_at OR purpose = 'otc_deposit')),
    ADD CONSTRAINT fx_quotes_purpose CHECK (purpose IN ('transfer', 'offramp', 'otc_deposit')),
    ADD CONSTRAINT fx_quotes_deposit CHECK (purpose <> 'otc_deposit'
        OR (side = 'buy' AND vendor_id IS NOT NULL AND network IS NOT NULL AND method IS NOT NULL AND formula <> 'kivuko-price-1')),
    ADD CONSTRAINT fx_quotes_object_type CHECK (object_type IN ('transfer', 'order', 'otc_deposit')),
    ADD CONSTRAINT fx_quotes_purpose_object CHECK (object_type = CASE purpose WHEN 'offramp' THEN 'order' ELSE purpose END);
CALL same_columns('fx_quotes',
    'id, owner_id, vendor_id, purpose, side, asset, amount, fiat_currency, rate_id, bid, ask, rate_source, rate_valid_from,
     rate_stale_at, profile_id, profile_version, fee_fixed, fee_points, fee_minimum, fee_maximum, spread_points, formula,
     rate, fiat_amount, fee, total, hash, created_at, expires_at, fiat_given, network, method');
DROP TRIGGER fx_quotes_sale_price ON fx_quotes;
CREATE TRIGGER fx_quotes_agreed_price BEFORE INSERT ON fx_quotes FOR EACH ROW WHEN (NEW.purpose <> 'transfer') EXECUTE FUNCTION check_sale_price();
CREATE INDEX fx_quotes_listed_idx ON fx_quotes (created_at DESC, id DESC);
CREATE INDEX fx_quotes_owned_idx ON fx_quotes (owner_id, created_at DESC, id DESC);
CREATE INDEX fx_quotes_vendor_idx ON fx_quotes (vendor_id, created_at DESC, id DESC) WHERE vendor_id IS NOT NULL;
