package store

import (
	"context"
	"strings"
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

// catalog is how one of the two catalogs is stored. Both have the same operations; its fields are the differences.
type catalog[T comparable] struct {
	name, what string // in audit rows, and in errors
	table      string
	columns    string // as they are written
	read       string // as they are read
	order      string
	codeField  string                 // in requests
	fields     func(T) map[string]any // a row by column, as written to the database (JSON) and to audit rows
	key        func(*T) catalogKey    // what all rows have
	check      func(T) error          // the rules of its fields
	faults     map[string]string      // the fields behind its unique constraints
	removable  func(T) error          // why a row can't be deleted
}

// catalogKey is what the rows of both catalogs have. The code identifies a row elsewhere.
type catalogKey struct {
	id               *uuid.UUID
	code             string
	created, updated *time.Time
}

const currencyColumns = `id, code, name, numeric_code, symbol, decimals, sort_order, is_active, created_at, updated_at`

const countryColumns = `id, display_name, official_name, alpha2_code, alpha3_code, numeric_code, phone_code, nationality,
	region, subregion, default_fiat_currency, supports_momo, supports_bank_payout, sort_order, is_active, created_at, updated_at`

var countries = catalog[exchange.Country]{
	name: catalogCountry, what: "country", table: "countries", columns: countryColumns, order: `sort_order, display_name COLLATE "C"`,
	read:      strings.Replace(countryColumns, "default_fiat_currency", "coalesce(default_fiat_currency, '') AS default_fiat_currency", 1),
	codeField: "alpha2_code", fields: countryFields, check: catalogdata.CheckCountry,
	key: func(c *exchange.Country) catalogKey {
		return catalogKey{&c.ID, c.Alpha2Code, &c.CreatedAt, &c.UpdatedAt}
	},
	faults: map[string]string{
		"countries_display_name_key": "/display_name", "countries_alpha2_code_key": "/alpha2_code",
		"countries_alpha3_code_key": "/alpha3_code", "countries_numeric_code_key": "/numeric_code",
	},
	removable: func(exchange.Country) error { return nil },
}

var currencies = catalog[exchange.FiatCurrency]{
	name: catalogCurrency, what: "currency", table: "fiat_currencies", columns: currencyColumns, read: currencyColumns,
	order: `sort_order, code COLLATE "C"`, codeField: "code", fields: currencyFields, check: catalogdata.CheckCurrency,
	key: func(c *exchange.FiatCurrency) catalogKey {
		return catalogKey{&c.ID, c.Code, &c.CreatedAt, &c.UpdatedAt}
	},
	faults: map[string]string{"fiat_currencies_code_key": "/code", "fiat_currencies_numeric_code_key": "/numeric_code"},
	removable: func(c exchange.FiatCurrency) error {
		if catalogdata.Booked(c.Code) {
			return exchange.Errorf(exchange.CodeStateConflict, "Kivuko keeps its books in %s, so it can't be deleted. Set is_active to false instead.", c.Code)
		}
		return nil
	},
}

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

func currencyFields(c exchange.FiatCurrency) map[string]any {
	return map[string]any{
		"id": c.ID, "code": c.Code, "name": c.Name, "numeric_code": c.NumericCode, "symbol": c.Symbol, "decimals": c.Decimals,
		"sort_order": c.SortOrder, "is_active": c.IsActive, "created_at": c.CreatedAt, "updated_at": c.UpdatedAt,
	}
}

// ListCountries reads the catalog of countries in its order: all of it, or only the active rows. ListFiatCurrencies does the
// same for currencies.
func (s *Store) ListCountries(ctx context.Context, activeOnly bool) ([]exchange.Country, error) {
	return countries.list(ctx, s, activeOnly)
}

// ListFiatCurrencies reads the catalog of currencies, like ListCountries.
func (s *Store) ListFiatCurrencies(ctx context.Context, activeOnly bool) ([]exchange.FiatCurrency, error) {
	return currencies.list(ctx, s, activeOnly)
}

// Country reads one country, active or not. CodeNotFound when there is none with the id.
func (s *Store) Country(ctx context.Context, id uuid.UUID) (exchange.Country, error) {
	return countries.row(ctx, s.db, "", id)
}

// FiatCurrency reads one currency, like Country.
func (s *Store) FiatCurrency(ctx context.Context, id uuid.UUID) (exchange.FiatCurrency, error) {
	return currencies.row(ctx, s.db, "", id)
}

// CreateCountry adds a country. Without an id it gets a new one. With the id of a country that has the same alpha-2
// code it returns that country unchanged, because the request is a repetition. CodeInvalid names the fields that break
// a rule, CodeConflict those whose value another country has.
func (s *Store) CreateCountry(ctx context.Context, c exchange.Country, by exchange.Principal) (exchange.Country, error) {
	return countries.write(ctx, s, c, by, countries.create)
}

// CreateFiatCurrency adds a currency, like CreateCountry.
func (s *Store) CreateFiatCurrency(ctx context.Context, c exchange.FiatCurrency, by exchange.Principal) (exchange.FiatCurrency, error) {
	return currencies.write(ctx, s, c, by, currencies.create)
}

// UpdateCountry replaces every field of the country with c's id except its times. The alpha-2 code identifies the
// country elsewhere and can't change. CodeStateConflict when c.UpdatedAt is set and the row was changed since then, so
// that no admin overwrites another's edit unseen. Other errors are those of CreateCountry, and CodeNotFound.
func (s *Store) UpdateCountry(ctx context.Context, c exchange.Country, by exchange.Principal) (exchange.Country, error) {
	return countries.write(ctx, s, c, by, countries.update)
}

// UpdateFiatCurrency replaces every field of the currency with c's id, like UpdateCountry. The code can't change:
// countries and amounts refer to it.
func (s *Store) UpdateFiatCurrency(ctx context.Context, c exchange.FiatCurrency, by exchange.Principal) (exchange.FiatCurrency, error) {
	return currencies.write(ctx, s, c, by, currencies.update)
}

// DeleteCountry removes a country from the catalog for good: seeding does not restore it. CodeNotFound when there is
// none with the id.
func (s *Store) DeleteCountry(ctx context.Context, id uuid.UUID, by exchange.Principal) error {
	return countries.remove(ctx, s, id, by)
}

// DeleteFiatCurrency removes a currency, like DeleteCountry. CodeStateConflict when Kivuko keeps its books in it or a
// country has it as its default: make such a currency inactive instead.
func (s *Store) DeleteFiatCurrency(ctx context.Context, id uuid.UUID, by exchange.Principal) error {
	err := currencies.remove(ctx, s, id, by)
	if pg.Broke(err, defaultCurrencyReference) {
		return exchange.Wrap(exchange.CodeStateConflict, err, "The currency is the default of a country, so it can't be deleted. Set is_active to false instead.")
	}
	return err
}

func (k catalog[T]) list(ctx context.Context, s *Store, activeOnly bool) ([]T, error) {
	return readAll[T](ctx, s.db, k.what, `SELECT `+k.read+` FROM `+k.table+` WHERE is_active OR NOT $1 ORDER BY `+k.order, activeOnly)
}

// row reads a row, and may lock it.
func (k catalog[T]) row(ctx context.Context, from reader, lock string, id uuid.UUID) (T, error) {
	return readOne[T](ctx, from, k.what, `SELECT `+k.read+` FROM `+k.table+` WHERE id = $1`+lock, id)
}

// write runs a change of a checked row, and names the fields of the constraints that it breaks.
func (k catalog[T]) write(ctx context.Context, s *Store, c T, by exchange.Principal, change func(context.Context, unitTx, T, exchange.Principal) (T, error)) (T, error) {
	var none, written T
	if err := k.check(c); err != nil {
		return none, err
	}
	err := s.inTx(ctx, k.what, func(u unitTx) (err error) {
		written, err = change(ctx, u, c, by)
		return err
	})
	if err != nil {
		return none, translate(catalogFault(err, k.faults), k.what)
	}
	return written, nil
}

// Rows are passed as a JSON array, so that one statement inserts any number of them. A repeated id is skipped; any
// other collision is an error.
func (k catalog[T]) insert() string {
	return `INSERT INTO ` + k.table + ` (` + k.columns + `) SELECT ` + k.columns + ` FROM jsonb_populate_recordset(NULL::` + k.table + `, $1::jsonb) ON CONFLICT (id) DO NOTHING`
}

func (k catalog[T]) create(ctx context.Context, u unitTx, c T, by exchange.Principal) (T, error) {
	var none T
	key := k.key(&c)
	var err error
	if *key.id, err = idOrNew(*key.id); err != nil {
		return none, err
	}
	*key.created, *key.updated = u.s.now(), u.s.now()
	n, err := insertCatalogRows(ctx, u, k.insert(), k.fields(c))
	if err != nil {
		return none, err
	}
	r, err := k.row(ctx, u, "", *key.id)
	if err != nil {
		return none, err
	}
	if n == 0 {
		if k.key(&r).code != key.code {
			return none, exchange.Errorf(exchange.CodeConflict, "Another %s already has this id.", k.what)
		}
		return r, nil
	}
	return r, catalogChanged(ctx, u, by, catalogChange{catalog: k.name, verb: "create", id: *key.id, code: key.code, after: k.fields(r)})
}

func (k catalog[T]) update(ctx context.Context, u unitTx, c T, by exchange.Principal) (T, error) {
	var none T
	key := k.key(&c)
	old, err := k.row(ctx, u, ` FOR UPDATE`, *key.id)
	if err != nil {
		return none, err
	}
	before, expected := k.key(&old), *key.updated
	if err := require(key.code == before.code, "/"+k.codeField, "immutable", "must not change; add another "+k.what+" instead"); err != nil {
		return none, err
	}
	if *key.created, *key.updated = *before.created, *before.updated; c == old {
		return old, nil
	}
	if !expected.IsZero() && !expected.Equal(*before.updated) {
		return none, pg.ErrChangedMeanwhile
	}
	*key.updated = laterThan(u.s.now(), *before.updated)
	values, err := document(k.fields(c))
	if err != nil {
		return none, err
	}
	after, err := readOne[T](ctx, u, k.what, `UPDATE `+k.table+` SET (`+k.columns+`) = (SELECT `+k.columns+` FROM jsonb_populate_record(NULL::`+k.table+`, $2::jsonb))
		WHERE id = $1 RETURNING `+k.read, *key.id, values)
	if err != nil {
		return none, err
	}
	return after, catalogChanged(ctx, u, by, catalogChange{
		catalog: k.name, verb: "update", id: *key.id, code: key.code, before: k.fields(old), after: k.fields(after),
	})
}

func (k catalog[T]) remove(ctx context.Context, s *Store, id uuid.UUID, by exchange.Principal) error {
	return s.inTx(ctx, k.what, func(u unitTx) error {
		r, err := readOne[T](ctx, u, k.what, `DELETE FROM `+k.table+` WHERE id = $1 RETURNING `+k.read, id)
		if err != nil {
			return err
		}
		if err := k.removable(r); err != nil {
			return err
		}
		return catalogChanged(ctx, u, by, catalogChange{catalog: k.name, verb: "delete", id: id, code: k.key(&r).code, before: k.fields(r)})
	})
}

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
