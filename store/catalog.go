package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/catalogdata"
	"kivuko/store/pg"
)

// The two catalogs, as catalog_removals and audit rows name them.
const (
	catalogCountry  = "country"
	catalogCurrency = "fiat_currency"
)

const countryColumns = `id, display_name, official_name, alpha2_code, alpha3_code, numeric_code, phone_code, nationality,
	region, subregion, coalesce(default_fiat_currency, '') AS default_fiat_currency, supports_momo, supports_bank_payout,
	sort_order, is_active, created_at, updated_at`

// countryFields is a country by column, as written to the database (JSON) and to audit rows.
func countryFields(c exchange.Country) map[string]any {
	fields := map[string]any{
		"id": c.ID, "display_name": c.DisplayName, "official_name": c.OfficialName, "alpha2_code": c.Alpha2Code,
		"alpha3_code": c.Alpha3Code, "numeric_code": c.NumericCode, "phone_code": c.PhoneCode, "nationality": c.Nationality,
		"region": c.Region, "subregion": c.Subregion, "default_fiat_currency": nil, "supports_momo": c.SupportsMomo,
		"supports_bank_payout": c.SupportsBankPayout, "sort_order": c.SortOrder, "is_active": c.IsActive,
		"created_at": c.CreatedAt, "updated_at": c.UpdatedAt,
	}
	if c.DefaultFiatCurrency != "" {
		fields["default_fiat_currency"] = c.DefaultFiatCurrency
	}
	return fields
}

// ListCountries reads the catalog of countries in its order: all of it, or only the active rows.
func (s *Store) ListCountries(ctx context.Context, activeOnly bool) ([]exchange.Country, error) {
	var rows []exchange.Country
	err := s.db.All(ctx, &rows, `SELECT `+countryColumns+` FROM countries WHERE is_active OR NOT $1
		ORDER BY sort_order, display_name COLLATE "C"`, activeOnly)
	if err != nil {
		return nil, translate(err, "country")
	}
	return rows, nil
}

// Country reads one country, active or not. CodeNotFound when there is none with the id.
func (s *Store) Country(ctx context.Context, id uuid.UUID) (exchange.Country, error) {
	var r exchange.Country
	if err := s.db.Get(ctx, &r, `SELECT `+countryColumns+` FROM countries WHERE id = $1`, id); err != nil {
		return exchange.Country{}, translate(err, "country")
	}
	return r, nil
}

// CreateCountry adds a country. Without an id it gets a new one. With the id of a country that has the same alpha-2
// code it returns that country unchanged, because the request is a repetition. CodeInvalid names the fields that break
// a rule, CodeConflict those whose value another country has.
func (s *Store) CreateCountry(ctx context.Context, c exchange.Country, by exchange.Principal) (exchange.Country, error) {
	if err := catalogdata.CheckCountry(c); err != nil {
		return exchange.Country{}, err
	}
	var created exchange.Country
	err := s.inTx(ctx, catalogCountry, func(u unitTx) error {
		var err error
		created, err = createCountry(ctx, u, c, by)
		return err
	})
	if err != nil {
		return exchange.Country{}, translate(catalogFault(err, countryFaults), "country")
	}
	return created, nil
}

func createCountry(ctx context.Context, u unitTx, c exchange.Country, by exchange.Principal) (exchange.Country, error) {
	var err error
	if c.ID, err = idOrNew(c.ID); err != nil {
		return exchange.Country{}, err
	}
	c.CreatedAt, c.UpdatedAt = u.s.now(), u.s.now()
	n, err := insertCatalogRows(ctx, u, insertCountry, countryFields(c))
	if err != nil {
		return exchange.Country{}, err
	}
	var r exchange.Country
	if err := u.Get(ctx, &r, `SELECT `+countryColumns+` FROM countries WHERE id = $1`, c.ID); err != nil {
		return exchange.Country{}, err
	}
	if n == 0 {
		if r.Alpha2Code != c.Alpha2Code {
			return exchange.Country{}, exchange.Errorf(exchange.CodeConflict, "Another country already has this id.")
		}
		return r, nil
	}
	return r, catalogChanged(ctx, u, by, catalogChange{
		catalog: catalogCountry, verb: "create", id: c.ID, code: c.Alpha2Code, after: countryFields(r),
	})
}

// UpdateCountry replaces every field of the country with c's id except its times. The alpha-2 code identifies the
// country elsewhere and can't change. CodeStateConflict when c.UpdatedAt is set and the row was changed since then, so
// that no admin overwrites another's edit unseen. Other errors are those of CreateCountry, and CodeNotFound.
func (s *Store) UpdateCountry(ctx context.Context, c exchange.Country, by exchange.Principal) (exchange.Country, error) {
	if err := catalogdata.CheckCountry(c); err != nil {
		return exchange.Country{}, err
	}
	var updated exchange.Country
	err := s.inTx(ctx, catalogCountry, func(u unitTx) error {
		var err error
		updated, err = updateCountry(ctx, u, c, by)
		return err
	})
	if err != nil {
		return exchange.Country{}, translate(catalogFault(err, countryFaults), "country")
	}
	return updated, nil
}

func updateCountry(ctx context.Context, u unitTx, c exchange.Country, by exchange.Principal) (exchange.Country, error) {
	var before, after exchange.Country
	if err := u.Get(ctx, &before, `SELECT `+countryColumns+` FROM countries WHERE id = $1 FOR UPDATE`, c.ID); err != nil {
		return exchange.Country{}, err
	}
	if err := require(c.Alpha2Code == before.Alpha2Code, "/alpha2_code", "immutable", "must not change; add another country instead"); err != nil {
		return exchange.Country{}, err
	}
	old, expected := before, c.UpdatedAt
	if c.CreatedAt, c.UpdatedAt = old.CreatedAt, old.UpdatedAt; c == old {
		return old, nil
	}
	if !expected.IsZero() && !expected.Equal(old.UpdatedAt) {
		return exchange.Country{}, pg.ErrChangedMeanwhile
	}
	err := u.Get(ctx, &after, `UPDATE countries SET display_name = $2, official_name = $3, alpha3_code = $4, numeric_code = $5,
		phone_code = $6, nationality = $7, region = $8, subregion = $9, default_fiat_currency = nullif($10, ''), supports_momo = $11,
		supports_bank_payout = $12, sort_order = $13, is_active = $14, updated_at = $15 WHERE id = $1 RETURNING `+countryColumns,
		c.ID, c.DisplayName, c.OfficialName, c.Alpha3Code, c.NumericCode, c.PhoneCode, c.Nationality, c.Region, c.Subregion,
		c.DefaultFiatCurrency, c.SupportsMomo, c.SupportsBankPayout, c.SortOrder, c.IsActive, laterThan(u.s.now(), old.UpdatedAt))
	if err != nil {
		return exchange.Country{}, err
	}
	return after, catalogChanged(ctx, u, by, catalogChange{
		catalog: catalogCountry, verb: "update", id: c.ID, code: c.Alpha2Code, before: countryFields(old), after: countryFields(after),
	})
}

// DeleteCountry removes a country from the catalog for good: seeding does not restore it. CodeNotFound when there is
// none with the id.
func (s *Store) DeleteCountry(ctx context.Context, id uuid.UUID, by exchange.Principal) error {
	return s.inTx(ctx, catalogCountry, func(u unitTx) error {
		var r exchange.Country
		if err := u.Get(ctx, &r, `DELETE FROM countries WHERE id = $1 RETURNING `+countryColumns, id); err != nil {
			return err
		}
		return catalogChanged(ctx, u, by, catalogChange{
			catalog: catalogCountry, verb: "delete", id: id, code: r.Alpha2Code, before: countryFields(r),
		})
	})
}

const currencyColumns = `id, code, name, numeric_code, symbol, decimals, sort_order, is_active, created_at, updated_at`

// currencyFields is a currency by column, as written to the database (JSON) and to audit rows.
func currencyFields(c exchange.FiatCurrency) map[string]any {
	return map[string]any{
		"id": c.ID, "code": c.Code, "name": c.Name, "numeric_code": c.NumericCode, "symbol": c.Symbol, "decimals": c.Decimals,
		"sort_order": c.SortOrder, "is_active": c.IsActive, "created_at": c.CreatedAt, "updated_at": c.UpdatedAt,
	}
}

// ListFiatCurrencies reads the catalog of currencies in its order: all of it, or only the active rows.
func (s *Store) ListFiatCurrencies(ctx context.Context, activeOnly bool) ([]exchange.FiatCurrency, error) {
	var rows []exchange.FiatCurrency
	err := s.db.All(ctx, &rows, `SELECT `+currencyColumns+` FROM fiat_currencies WHERE is_active OR NOT $1
		ORDER BY sort_order, code COLLATE "C"`, activeOnly)
	if err != nil {
		return nil, translate(err, "currency")
	}
	return rows, nil
}

// FiatCurrency reads one currency, active or not. CodeNotFound when there is none with the id.
func (s *Store) FiatCurrency(ctx context.Context, id uuid.UUID) (exchange.FiatCurrency, error) {
	var r exchange.FiatCurrency
	if err := s.db.Get(ctx, &r, `SELECT `+currencyColumns+` FROM fiat_currencies WHERE id = $1`, id); err != nil {
		return exchange.FiatCurrency{}, translate(err, "currency")
	}
	return r, nil
}

// CreateFiatCurrency adds a currency. Ids, repetition and errors are as with CreateCountry.
func (s *Store) CreateFiatCurrency(ctx context.Context, c exchange.FiatCurrency, by exchange.Principal) (exchange.FiatCurrency, error) {
	if err := catalogdata.CheckCurrency(c); err != nil {
		return exchange.FiatCurrency{}, err
	}
	var created exchange.FiatCurrency
	err := s.inTx(ctx, "currency", func(u unitTx) error {
		var err error
		created, err = createCurrency(ctx, u, c, by)
		return err
	})
	if err != nil {
		return exchange.FiatCurrency{}, translate(catalogFault(err, currencyFaults), "currency")
	}
	return created, nil
}

func createCurrency(ctx context.Context, u unitTx, c exchange.FiatCurrency, by exchange.Principal) (exchange.FiatCurrency, error) {
	var err error
	if c.ID, err = idOrNew(c.ID); err != nil {
		return exchange.FiatCurrency{}, err
	}
	c.CreatedAt, c.UpdatedAt = u.s.now(), u.s.now()
	n, err := insertCatalogRows(ctx, u, insertCurrency, currencyFields(c))
	if err != nil {
		return exchange.FiatCurrency{}, err
	}
	var r exchange.FiatCurrency
	if err := u.Get(ctx, &r, `SELECT `+currencyColumns+` FROM fiat_currencies WHERE id = $1`, c.ID); err != nil {
		return exchange.FiatCurrency{}, err
	}
	if n == 0 {
		if r.Code != c.Code {
			return exchange.FiatCurrency{}, exchange.Errorf(exchange.CodeConflict, "Another currency already has this id.")
		}
		return r, nil
	}
	return r, catalogChanged(ctx, u, by, catalogChange{
		catalog: catalogCurrency, verb: "create", id: c.ID, code: c.Code, after: currencyFields(r),
	})
}

// UpdateFiatCurrency replaces every field of the currency with c's id except its times. The code can't change:
// countries and amounts refer to it. Times and errors are as with UpdateCountry.
func (s *Store) UpdateFiatCurrency(ctx context.Context, c exchange.FiatCurrency, by exchange.Principal) (exchange.FiatCurrency, error) {
	if err := catalogdata.CheckCurrency(c); err != nil {
		return exchange.FiatCurrency{}, err
	}
	var updated exchange.FiatCurrency
	err := s.inTx(ctx, "currency", func(u unitTx) error {
		var err error
		updated, err = updateCurrency(ctx, u, c, by)
		return err
	})
	if err != nil {
		return exchange.FiatCurrency{}, translate(catalogFault(err, currencyFaults), "currency")
	}
	return updated, nil
}

func updateCurrency(ctx context.Context, u unitTx, c exchange.FiatCurrency, by exchange.Principal) (exchange.FiatCurrency, error) {
	var before, after exchange.FiatCurrency
	if err := u.Get(ctx, &before, `SELECT `+currencyColumns+` FROM fiat_currencies WHERE id = $1 FOR UPDATE`, c.ID); err != nil {
		return exchange.FiatCurrency{}, err
	}
	if err := require(c.Code == before.Code, "/code", "immutable", "must not change; add another currency instead"); err != nil {
		return exchange.FiatCurrency{}, err
	}
	old, expected := before, c.UpdatedAt
	if c.CreatedAt, c.UpdatedAt = old.CreatedAt, old.UpdatedAt; c == old {
		return old, nil
	}
	if !expected.IsZero() && !expected.Equal(old.UpdatedAt) {
		return exchange.FiatCurrency{}, pg.ErrChangedMeanwhile
	}
	err := u.Get(ctx, &after, `UPDATE fiat_currencies SET name = $2, numeric_code = $3, symbol = $4, decimals = $5, sort_order = $6,
		is_active = $7, updated_at = $8 WHERE id = $1 RETURNING `+currencyColumns,
		c.ID, c.Name, c.NumericCode, c.Symbol, c.Decimals, c.SortOrder, c.IsActive, laterThan(u.s.now(), old.UpdatedAt))
	if err != nil {
		return exchange.FiatCurrency{}, err
	}
	return after, catalogChanged(ctx, u, by, catalogChange{
		catalog: catalogCurrency, verb: "update", id: c.ID, code: c.Code, before: currencyFields(old), after: currencyFields(after),
	})
}

// DeleteFiatCurrency removes a currency from the catalog for good: seeding does not restore it. CodeStateConflict when
// Kivuko keeps its books in it or a country has it as its default: make such a currency inactive instead. CodeNotFound
// when there is none with the id.
func (s *Store) DeleteFiatCurrency(ctx context.Context, id uuid.UUID, by exchange.Principal) error {
	err := s.inTx(ctx, "currency", func(u unitTx) error {
		var r exchange.FiatCurrency
		if err := u.Get(ctx, &r, `DELETE FROM fiat_currencies WHERE id = $1 RETURNING `+currencyColumns, id); err != nil {
			return err
		}
		if catalogdata.Booked(r.Code) {
			return exchange.Errorf(exchange.CodeStateConflict, "Kivuko keeps its books in %s, so it can't be deleted. Set is_active to false instead.", r.Code)
		}
		return catalogChanged(ctx, u, by, catalogChange{
			catalog: catalogCurrency, verb: "delete", id: id, code: r.Code, before: currencyFields(r),
		})
	})
	if pg.Broke(err, defaultCurrencyReference) {
		return exchange.Wrap(exchange.CodeStateConflict, err, "The currency is the default of a country, so it can't be deleted. Set is_active to false instead.")
	}
	return err
}

// Rows are passed as a JSON array, so that one statement inserts any number of them. A repeated id is skipped; any
// other collision is an error.
const (
	insertCountryColumns = `id, display_name, official_name, alpha2_code, alpha3_code, numeric_code, phone_code, nationality,
		region, subregion, default_fiat_currency, supports_momo, supports_bank_payout, sort_order, is_active, created_at, updated_at`
	insertCountry = `INSERT INTO countries (` + insertCountryColumns + `)
		SELECT ` + insertCountryColumns + ` FROM jsonb_populate_recordset(NULL::countries, $1::jsonb) ON CONFLICT (id) DO NOTHING`
	insertCurrency = `INSERT INTO fiat_currencies (` + currencyColumns + `)
		SELECT ` + currencyColumns + ` FROM jsonb_populate_recordset(NULL::fiat_currencies, $1::jsonb) ON CONFLICT (id) DO NOTHING`
)

// insertCatalogRows returns how many of the rows were inserted.
func insertCatalogRows(ctx context.Context, u unitTx, query string, rows ...map[string]any) (int64, error) {
	array, err := document(rows)
	if err != nil {
		return 0, err
	}
	return u.Exec(ctx, query, array)
}

// catalogChange is what happened to a row of a catalog.
type catalogChange struct {
	catalog, verb string
	id            uuid.UUID
	code          string
	before, after any // by column; nil where there was or is none
}

// catalogChanged writes the audit row of a change, and records a deletion until the code is added again.
func catalogChanged(ctx context.Context, u unitTx, by exchange.Principal, ch catalogChange) error {
	var err error
	switch ch.verb {
	case "delete":
		_, err = u.Exec(ctx, `INSERT INTO catalog_removals (catalog, code, removed_at) VALUES ($1, $2, $3)
			ON CONFLICT (catalog, code) DO UPDATE SET removed_at = EXCLUDED.removed_at`, ch.catalog, ch.code, u.s.now())
	case "create":
		_, err = u.Exec(ctx, `DELETE FROM catalog_removals WHERE catalog = $1 AND code = $2`, ch.catalog, ch.code)
	}
	if err != nil {
		return err
	}
	return u.audit(ctx, by, ch.catalog+"."+ch.verb, ch.catalog, ch.id, ch.before, ch.after)
}

// defaultCurrencyReference is the foreign key from countries to currencies.
const defaultCurrencyReference = "countries_default_fiat_currency_fkey"

// The fields behind the unique constraints of the catalogs.
var (
	countryFaults = map[string]string{
		"countries_display_name_key": "/display_name", "countries_alpha2_code_key": "/alpha2_code",
		"countries_alpha3_code_key": "/alpha3_code", "countries_numeric_code_key": "/numeric_code",
	}
	currencyFaults = map[string]string{
		"fiat_currencies_code_key": "/code", "fiat_currencies_numeric_code_key": "/numeric_code",
	}
)

// catalogFault names the field of a violated constraint.
func catalogFault(err error, unique map[string]string) error {
	if pg.Broke(err, defaultCurrencyReference) {
		return exchange.Invalid(exchange.FieldError{
			Pointer: "/default_fiat_currency", Code: "unknown", Message: "must be a currency of the catalog",
		})
	}
	for constraint, pointer := range unique {
		if pg.Broke(err, constraint) {
			return &exchange.Error{
				Code: exchange.CodeConflict, Message: "The catalog already has an entry with this value.", Cause: err,
				Fields: []exchange.FieldError{{Pointer: pointer, Code: "taken", Message: "belongs to another entry of the catalog"}},
			}
		}
	}
	return err
}

// idOrNew returns the id, or a new one for the zero id.
func idOrNew(id uuid.UUID) (uuid.UUID, error) {
	if id != uuid.Nil {
		return id, nil
	}
	return uuid.NewV7()
}

// laterThan is now, or just after last when the clock did not advance: updated_at distinguishes a row's versions, so
// it must always grow.
func laterThan(now, last time.Time) time.Time {
	if now.After(last) {
		return now
	}
	return last.Add(time.Millisecond)
}
