package store_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/catalogdata"
	"kivuko/store/storetest"
)

var catalogAdmin = exchange.Principal{
	UserID: uuid.MustParse("01900000-0000-7000-8000-0000000000ad"), Role: exchange.RoleAdmin, IP: "192.0.2.7", RequestID: "req-catalog",
}

func seededCatalogs(t *testing.T) *store.Store {
	t.Helper()
	s, _ := seededCatalogsWithTables(t)
	return s
}

// catalogClock does not advance, so that versions of a row differ without its help.
var catalogClock = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// seededCatalogsWithTables also returns the owner's connection to the tables.
func seededCatalogsWithTables(t *testing.T) (*store.Store, *sql.DB) {
	t.Helper()
	dsn := storetest.URL(t)
	s := storetest.Open(t, dsn, store.Options{Now: func() time.Time { return catalogClock }})
	if err := s.SeedCatalogs(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, storetest.DB(t, dsn)
}

// wantAudit compares the audit rows of one object, oldest first, each as "action before>after" with
// the values that the given column had.
func wantAudit(t *testing.T, db *sql.DB, id uuid.UUID, column string, want ...string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT action || ' ' || coalesce(before ->> $2, '-') || '>' || coalesce(after ->> $2, '-'),
		actor, ip, request_id FROM audit_log WHERE object_id = $1 ORDER BY id`, id, column)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var what, actor, ip, request string
		if err := rows.Scan(&what, &actor, &ip, &request); err != nil {
			t.Fatal(err)
		}
		if actor != catalogAdmin.ActorName() || ip != catalogAdmin.IP || request != catalogAdmin.RequestID {
			t.Errorf("%s was done by %s from %s in %s", what, actor, ip, request)
		}
		got = append(got, what)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
}

func wantCode(t *testing.T, err error, code exchange.Code, pointers ...string) {
	t.Helper()
	if exchange.CodeOf(err) != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
	own, _ := errors.AsType[*exchange.Error](err)
	var got []string
	for _, f := range own.Fields {
		got = append(got, f.Pointer)
	}
	if !slices.Equal(got, pointers) {
		t.Errorf("fields %v, want %v", got, pointers)
	}
}

// utopia is a country that ISO 3166-1 leaves to its users.
func utopia() exchange.Country {
	return exchange.Country{
		DisplayName: "Utopia", OfficialName: "Commonwealth of Utopia", Alpha2Code: "XU", Alpha3Code: "XUT", NumericCode: "901",
		PhoneCode: "+999", Nationality: "Utopian", Region: "Europe", Subregion: "Western Europe", DefaultFiatCurrency: "EUR", SortOrder: 5000,
	}
}

func guinea() exchange.FiatCurrency {
	return exchange.FiatCurrency{Code: "XGU", Name: "Guinea of account", NumericCode: "001", Symbol: "gn", Decimals: 2, SortOrder: 2000}
}

func TestCatalogSeedFillsBothCatalogs(t *testing.T) {
	s := seededCatalogs(t)
	want, err := catalogdata.Countries()
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.ListCountries(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(want, func(a, b exchange.Country) int { return a.SortOrder - b.SortOrder })
	for i := range got {
		if !got[i].CreatedAt.Equal(catalogClock) || !got[i].CreatedAt.Equal(got[i].UpdatedAt) || got[i].CreatedAt.Location() != time.UTC {
			t.Fatalf("%s was created at %v and updated at %v", got[i].Alpha2Code, got[i].CreatedAt, got[i].UpdatedAt)
		}
		got[i].CreatedAt, got[i].UpdatedAt = time.Time{}, time.Time{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("countries (-embedded +stored):\n%s", diff)
	}
	money, err := s.ListFiatCurrencies(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := catalogdata.Currencies()
	if err != nil {
		t.Fatal(err)
	}
	if len(money) != len(embedded) || money[0].Code != "KES" || money[1].Code != "AED" {
		t.Errorf("%d currencies that begin with %v", len(money), money[:2])
	}
}

func TestCatalogActiveRowsAreKenyaAndItsShilling(t *testing.T) {
	s := seededCatalogs(t)
	countries, err := s.ListCountries(t.Context(), true)
	if err != nil || len(countries) != 1 || countries[0].ID != catalogdata.CountryID("KE") {
		t.Errorf("active countries %v, %v", countries, err)
	}
	currencies, err := s.ListFiatCurrencies(t.Context(), true)
	if err != nil || len(currencies) != 1 || currencies[0].ID != catalogdata.CurrencyID("KES") {
		t.Errorf("active currencies %v, %v", currencies, err)
	}
}

func TestCatalogSeedKeepsWhatAdminsDid(t *testing.T) {
	ctx, s := t.Context(), seededCatalogs(t)
	uganda, err := s.Country(ctx, catalogdata.CountryID("UG"))
	if err != nil {
		t.Fatal(err)
	}
	uganda.DisplayName, uganda.IsActive, uganda.SupportsMomo = "Uganda (pilot)", true, true
	if uganda, err = s.UpdateCountry(ctx, uganda, catalogAdmin); err != nil {
		t.Fatal(err)
	}
	// The Ålands are deleted for good; Zimbabwe is deleted and added again by hand, without its currency.
	for _, code := range []string{"AX", "ZW"} {
		if err := s.DeleteCountry(ctx, catalogdata.CountryID(code), catalogAdmin); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteFiatCurrency(ctx, catalogdata.CurrencyID("ZWG"), catalogAdmin); err != nil {
		t.Fatal(err)
	}
	byHand := utopia()
	byHand.Alpha2Code, byHand.Alpha3Code, byHand.NumericCode, byHand.DisplayName = "ZW", "ZWE", "716", "Zimbabwe"
	byHand.PhoneCode = "+263"
	byHand, err = s.CreateCountry(ctx, byHand, catalogAdmin)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := s.ListCountries(ctx, false)
	if err := s.SeedCatalogs(ctx); err != nil {
		t.Fatal(err)
	}
	after, err := s.ListCountries(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("seeding changed rows:\n%s", diff)
	}
	if !slices.Contains(after, uganda) || !slices.Contains(after, byHand) {
		t.Error("an admin's row is gone")
	}
	if len(after) != 248 {
		t.Errorf("%d countries, want all but one", len(after))
	}
}

// A country that is seeded late must not fail for want of a currency that an admin deleted.
func TestCatalogSeedWithoutADeletedCurrency(t *testing.T) {
	ctx := t.Context()
	s, db := seededCatalogsWithTables(t)
	if err := s.DeleteCountry(ctx, catalogdata.CountryID("ZW"), catalogAdmin); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteFiatCurrency(ctx, catalogdata.CurrencyID("ZWG"), catalogAdmin); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, `DELETE FROM catalog_removals WHERE catalog = 'country'`); err != nil {
		t.Fatal(err)
	}
	if err := s.SeedCatalogs(ctx); err != nil {
		t.Fatal(err)
	}
	zimbabwe, err := s.Country(ctx, catalogdata.CountryID("ZW"))
	if err != nil || zimbabwe.DefaultFiatCurrency != "" {
		t.Errorf("Zimbabwe came back with %q, %v", zimbabwe.DefaultFiatCurrency, err)
	}
}

func TestCatalogSeedsAtOnce(t *testing.T) {
	s := storetest.New(t)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { errs[i] = s.SeedCatalogs(context.WithoutCancel(t.Context())) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if all, err := s.ListCountries(t.Context(), false); err != nil || len(all) != 249 {
		t.Errorf("%d countries, %v", len(all), err)
	}
}

func TestCatalogCountryLife(t *testing.T) {
	ctx := t.Context()
	s, db := seededCatalogsWithTables(t)
	created, err := s.CreateCountry(ctx, utopia(), catalogAdmin)
	if err != nil {
		t.Fatal(err)
	}
	want := utopia()
	want.ID, want.CreatedAt, want.UpdatedAt = created.ID, created.CreatedAt, created.UpdatedAt
	if diff := cmp.Diff(want, created); diff != "" || created.ID.Version() != 7 {
		t.Errorf("created %s (-want +got):\n%s", created.ID, diff)
	}
	want.DisplayName, want.DefaultFiatCurrency, want.IsActive, want.SortOrder = "Utopia the Second", "", true, 2
	updated, err := s.UpdateCountry(ctx, want, catalogAdmin)
	if err != nil {
		t.Fatal(err)
	}
	if !updated.UpdatedAt.After(created.UpdatedAt) {
		t.Errorf("updated at %v, created at %v", updated.UpdatedAt, created.UpdatedAt)
	}
	want.UpdatedAt = updated.UpdatedAt
	read, err := s.Country(ctx, created.ID)
	if diff := cmp.Diff(want, read); err != nil || diff != "" {
		t.Errorf("read %v (-want +got):\n%s", err, diff)
	}
	active, err := s.ListCountries(ctx, true)
	if err != nil || len(active) != 2 || active[1].ID != created.ID {
		t.Errorf("active %v, %v", active, err)
	}
	if err := s.DeleteCountry(ctx, created.ID, catalogAdmin); err != nil {
		t.Fatal(err)
	}
	_, err = s.Country(ctx, created.ID)
	wantCode(t, err, exchange.CodeNotFound)
	wantCode(t, s.DeleteCountry(ctx, created.ID, catalogAdmin), exchange.CodeNotFound)
	_, err = s.UpdateCountry(ctx, want, catalogAdmin)
	wantCode(t, err, exchange.CodeNotFound)
	wantAudit(t, db, created.ID, "display_name",
		"country.create ->Utopia", "country.update Utopia>Utopia the Second", "country.delete Utopia the Second>-")
}

func TestCatalogCurrencyLife(t *testing.T) {
	ctx := t.Context()
	s, db := seededCatalogsWithTables(t)
	created, err := s.CreateFiatCurrency(ctx, guinea(), catalogAdmin)
	if err != nil {
		t.Fatal(err)
	}
	want := created
	want.Name, want.Decimals, want.IsActive = "Guinea", 3, true
	updated, err := s.UpdateFiatCurrency(ctx, want, catalogAdmin)
	if err != nil {
		t.Fatal(err)
	}
	want.UpdatedAt = updated.UpdatedAt
	read, err := s.FiatCurrency(ctx, created.ID)
	if diff := cmp.Diff(want, read); err != nil || diff != "" {
		t.Errorf("read %v (-want +got):\n%s", err, diff)
	}
	if active, err := s.ListFiatCurrencies(ctx, true); err != nil || len(active) != 2 || active[1] != read {
		t.Errorf("active %v, %v", active, err)
	}
	if err := s.DeleteFiatCurrency(ctx, created.ID, catalogAdmin); err != nil {
		t.Fatal(err)
	}
	_, err = s.FiatCurrency(ctx, created.ID)
	wantCode(t, err, exchange.CodeNotFound)
	wantCode(t, s.DeleteFiatCurrency(ctx, created.ID, catalogAdmin), exchange.CodeNotFound)
	_, err = s.UpdateFiatCurrency(ctx, want, catalogAdmin)
	wantCode(t, err, exchange.CodeNotFound)
	wantAudit(t, db, created.ID, "decimals", "fiat_currency.create ->2", "fiat_currency.update 2>3", "fiat_currency.delete 3>-")
}

// A request whose response was lost is repeated with the same id. It creates neither a second row nor a second audit
// row.
func TestCatalogWritesMayRepeat(t *testing.T) {
	ctx := t.Context()
	s, db := seededCatalogsWithTables(t)
	c := utopia()
	c.ID = uuid.Must(uuid.NewV7())
	first, err := s.CreateCountry(ctx, c, catalogAdmin)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.CreateCountry(ctx, c, catalogAdmin); err != nil || again != first {
		t.Errorf("the second time gave %v, %v", again, err)
	}
	edit := first
	edit.Nationality = "Utopist"
	updated, err := s.UpdateCountry(ctx, edit, catalogAdmin)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.UpdateCountry(ctx, edit, catalogAdmin); err != nil || again != updated {
		t.Errorf("the second edit gave %v, %v", again, err)
	}
	wantAudit(t, db, c.ID, "nationality", "country.create ->Utopian", "country.update Utopian>Utopist")
	other := utopia()
	other.ID, other.Alpha2Code, other.Alpha3Code, other.NumericCode, other.DisplayName = c.ID, "XV", "XVT", "902", "Erewhon"
	_, err = s.CreateCountry(ctx, other, catalogAdmin)
	wantCode(t, err, exchange.CodeConflict)
	g := guinea()
	g.ID = uuid.Must(uuid.NewV7())
	one, err := s.CreateFiatCurrency(ctx, g, catalogAdmin)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.CreateFiatCurrency(ctx, g, catalogAdmin); err != nil || again != one {
		t.Errorf("the second time gave %v, %v", again, err)
	}
}

func TestCatalogOldEditsDoNotOverwriteNewOnes(t *testing.T) {
	ctx, s := t.Context(), seededCatalogs(t)
	read, err := s.Country(ctx, catalogdata.CountryID("UG"))
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := read, read
	mine.SortOrder, theirs.IsActive = 7, true
	if _, err := s.UpdateCountry(ctx, mine, catalogAdmin); err != nil {
		t.Fatal(err)
	}
	_, err = s.UpdateCountry(ctx, theirs, catalogAdmin)
	wantCode(t, err, exchange.CodeStateConflict)
	theirs.UpdatedAt = time.Time{} // who does not say what was read means the row as it is
	if _, err := s.UpdateCountry(ctx, theirs, catalogAdmin); err != nil {
		t.Error(err)
	}
	money, err := s.FiatCurrency(ctx, catalogdata.CurrencyID("UGX"))
	if err != nil {
		t.Fatal(err)
	}
	first, second := money, money
	first.Symbol, second.IsActive = "Sh", true
	if _, err := s.UpdateFiatCurrency(ctx, first, catalogAdmin); err != nil {
		t.Fatal(err)
	}
	_, err = s.UpdateFiatCurrency(ctx, second, catalogAdmin)
	wantCode(t, err, exchange.CodeStateConflict)
}

func TestCatalogRefusesBadCountries(t *testing.T) {
	ctx, s := t.Context(), seededCatalogs(t)
	cases := map[string]struct {
		spoil    func(*exchange.Country)
		code     exchange.Code
		pointers []string
	}{
		"rules":            {func(c *exchange.Country) { c.Alpha2Code, c.PhoneCode = "xu", "999" }, exchange.CodeInvalid, []string{"/alpha2_code", "/phone_code"}},
		"another's prefix": {func(c *exchange.Country) { c.Alpha2Code, c.PhoneCode = "KE", "+44" }, exchange.CodeInvalid, []string{"/phone_code"}},
		"unknown currency": {func(c *exchange.Country) { c.DefaultFiatCurrency = "XQQ" }, exchange.CodeInvalid, []string{"/default_fiat_currency"}},
		"name taken":       {func(c *exchange.Country) { c.DisplayName = "Kenya" }, exchange.CodeConflict, []string{"/display_name"}},
		"alpha-2 taken":    {func(c *exchange.Country) { c.Alpha2Code, c.PhoneCode = "KE", "+254" }, exchange.CodeConflict, []string{"/alpha2_code"}},
		"alpha-3 taken":    {func(c *exchange.Country) { c.Alpha3Code = "KEN" }, exchange.CodeConflict, []string{"/alpha3_code"}},
		"numeric taken":    {func(c *exchange.Country) { c.NumericCode = "404" }, exchange.CodeConflict, []string{"/numeric_code"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := utopia()
			tc.spoil(&c)
			_, err := s.CreateCountry(ctx, c, catalogAdmin)
			wantCode(t, err, tc.code, tc.pointers...)
			if name == "alpha-2 taken" {
				return
			}
			c = utopia()
			tc.spoil(&c)
			c.ID = catalogdata.CountryID("UG")
			if c.Alpha2Code == "XU" {
				c.Alpha2Code, c.PhoneCode = "UG", "+256"
			}
			_, err = s.UpdateCountry(ctx, c, catalogAdmin)
			wantCode(t, err, tc.code, tc.pointers...)
		})
	}
	c := utopia()
	c.ID = catalogdata.CountryID("UG")
	_, err := s.UpdateCountry(ctx, c, catalogAdmin)
	wantCode(t, err, exchange.CodeInvalid, "/alpha2_code")
}

func TestCatalogRefusesBadCurrencies(t *testing.T) {
	ctx, s := t.Context(), seededCatalogs(t)
	cases := map[string]struct {
		spoil    func(*exchange.FiatCurrency)
		code     exchange.Code
		pointers []string
	}{
		"rules":         {func(c *exchange.FiatCurrency) { c.Symbol, c.Decimals = "", 9 }, exchange.CodeInvalid, []string{"/symbol", "/decimals"}},
		"code taken":    {func(c *exchange.FiatCurrency) { c.Code = "KES" }, exchange.CodeConflict, []string{"/code"}},
		"numeric taken": {func(c *exchange.FiatCurrency) { c.NumericCode = "404" }, exchange.CodeConflict, []string{"/numeric_code"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := guinea()
			tc.spoil(&c)
			_, err := s.CreateFiatCurrency(ctx, c, catalogAdmin)
			wantCode(t, err, tc.code, tc.pointers...)
		})
	}
	c := guinea()
	c.ID = catalogdata.CurrencyID("UGX")
	_, err := s.UpdateFiatCurrency(ctx, c, catalogAdmin)
	wantCode(t, err, exchange.CodeInvalid, "/code")
	c.Code, c.NumericCode = "UGX", "404"
	_, err = s.UpdateFiatCurrency(ctx, c, catalogAdmin)
	wantCode(t, err, exchange.CodeConflict, "/numeric_code")
}

func TestCatalogKeepsCurrenciesInUse(t *testing.T) {
	ctx, s := t.Context(), seededCatalogs(t)
	refused := func(code string) {
		t.Helper()
		err := s.DeleteFiatCurrency(ctx, catalogdata.CurrencyID(code), catalogAdmin)
		wantCode(t, err, exchange.CodeStateConflict)
		if !strings.Contains(exchange.MessageOf(err), "is_active to false") {
			t.Errorf("%s: the message %q gives no way out", code, exchange.MessageOf(err))
		}
		if _, err := s.FiatCurrency(ctx, catalogdata.CurrencyID(code)); err != nil {
			t.Errorf("%s: %v", code, err)
		}
	}
	refused("UGX") // Uganda's
	if err := s.DeleteCountry(ctx, catalogdata.CountryID("KE"), catalogAdmin); err != nil {
		t.Fatal(err)
	}
	refused("KES") // no country's any more, but the ledger's
	if err := s.DeleteCountry(ctx, catalogdata.CountryID("UG"), catalogAdmin); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteFiatCurrency(ctx, catalogdata.CurrencyID("UGX"), catalogAdmin); err != nil {
		t.Error(err)
	}
}

// The tables refuse invalid rows themselves.
func TestCatalogTablesRefuseBrokenRows(t *testing.T) {
	_, db := seededCatalogsWithTables(t)
	for column, values := range map[string][]any{
		"countries.alpha2_code": {"ke", "K", "KEN", "AX", "KE\n"}, "countries.alpha3_code": {"ken", "KE", "ALA", nil},
		"countries.numeric_code": {"04", "4040", "4o4", "248"}, "countries.phone_code": {"254", "+0254", "+", "+12345678", "+25 4"},
		"countries.display_name": {"", " Kenya", "Uganda"}, "countries.default_fiat_currency": {"XQQ", nil},
		"countries.sort_order": {-1, 100001}, "fiat_currencies.code": {"kes", "KE", "USD", "USDT"},
		"fiat_currencies.numeric_code": {"4", "840", "4O4"}, "fiat_currencies.decimals": {-1, 5}, "fiat_currencies.symbol": {"", "123456789"},
	} {
		table, name, _ := strings.Cut(column, ".")
		id := catalogdata.CountryID("KE")
		if table == "fiat_currencies" {
			id = catalogdata.CurrencyID("KES")
		}
		for _, v := range values {
			_, err := db.ExecContext(t.Context(), `UPDATE `+table+` SET `+name+` = $2 WHERE id = $1`, id, v)
			if pe, ok := errors.AsType[*pq.Error](err); !ok || pe.Code.Class() != "23" {
				t.Errorf("%s took %v: %v", column, v, err)
			}
		}
	}
}
