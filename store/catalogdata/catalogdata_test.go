package catalogdata_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/catalogdata"
)

// The sizes of the standards in 2026: ISO 3166-1 in full, ISO 4217 without codes that can't be used for payments.
const (
	allCountries     = 249
	tenderCurrencies = 155
)

func countries(t *testing.T) map[string]exchange.Country {
	t.Helper()
	all, err := catalogdata.Countries()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != allCountries {
		t.Errorf("%d countries, want %d", len(all), allCountries)
	}
	by := map[string]exchange.Country{}
	for _, c := range all {
		by[c.Alpha2Code] = c
	}
	return by
}

func currencies(t *testing.T) map[string]exchange.FiatCurrency {
	t.Helper()
	all, err := catalogdata.Currencies()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != tenderCurrencies {
		t.Errorf("%d currencies, want %d", len(all), tenderCurrencies)
	}
	by := map[string]exchange.FiatCurrency{}
	for _, c := range all {
		by[c.Code] = c
	}
	return by
}

func TestCodesAreUnique(t *testing.T) {
	seen := map[string]string{}
	once := func(kind, value, of string) {
		t.Helper()
		if other, ok := seen[kind+value]; ok {
			t.Errorf("%s %q is of both %s and %s", kind, value, other, of)
		}
		seen[kind+value] = of
	}
	for _, c := range countries(t) {
		once("name", c.DisplayName, c.Alpha2Code)
		once("alpha2", c.Alpha2Code, c.Alpha2Code)
		once("alpha3", c.Alpha3Code, c.Alpha2Code)
		once("numeric", c.NumericCode, c.Alpha2Code)
		once("id", c.ID.String(), c.Alpha2Code)
	}
	for _, c := range currencies(t) {
		once("currency", c.Code, c.Code)
		once("currency name", c.Name, c.Code)
		once("currency numeric", c.NumericCode, c.Code)
		once("id", c.ID.String(), c.Code)
	}
}

func TestEveryDefaultCurrencyIsInTheCatalog(t *testing.T) {
	known := currencies(t)
	for _, c := range countries(t) {
		if _, ok := known[c.DefaultFiatCurrency]; !ok && c.Alpha2Code != "AQ" {
			t.Errorf("%s has the unknown currency %q", c.Alpha2Code, c.DefaultFiatCurrency)
		}
	}
}

func TestOnlyKenyaIsReached(t *testing.T) {
	for _, c := range countries(t) {
		kenya := c.Alpha2Code == "KE"
		if c.IsActive != kenya || c.SupportsMomo != kenya || c.SupportsBankPayout != kenya {
			t.Errorf("%s: active %v, momo %v, bank payout %v", c.Alpha2Code, c.IsActive, c.SupportsMomo, c.SupportsBankPayout)
		}
		if !kenya && c.SortOrder <= 1 {
			t.Errorf("%s is sorted before Kenya", c.Alpha2Code)
		}
	}
	for _, c := range currencies(t) {
		if c.IsActive != (c.Code == "KES") {
			t.Errorf("%s: active %v", c.Code, c.IsActive)
		}
	}
}

// The most error-prone rows: names with accents, codes that changed in recent years, unusual minor units, codes that
// begin with zero.
func TestKnownRows(t *testing.T) {
	want := map[string]string{
		"KE": "KEN 404 +254 Kenyan KES Eastern Africa", "AF": "AFG 004 +93 Afghan AFN Southern Asia",
		"AX": "ALA 248 +358 Ålander EUR Northern Europe", "BG": "BGR 100 +359 Bulgarian EUR Eastern Europe",
		"CI": "CIV 384 +225 Ivorian XOF Western Africa", "CW": "CUW 531 +599 Curaçaoan XCG Caribbean",
		"HR": "HRV 191 +385 Croatian EUR Southern Europe", "JM": "JAM 388 +1876 Jamaican JMD Caribbean",
		"SL": "SLE 694 +232 Sierra Leonean SLE Western Africa", "SS": "SSD 728 +211 South Sudanese SSP Eastern Africa",
		"SZ": "SWZ 748 +268 Swazi SZL Southern Africa", "ZW": "ZWE 716 +263 Zimbabwean ZWG Eastern Africa",
	}
	all := countries(t)
	for code, line := range want {
		c := all[code]
		got := strings.Join([]string{c.Alpha3Code, c.NumericCode, c.PhoneCode, c.Nationality, c.DefaultFiatCurrency, c.Subregion}, " ")
		if got != line {
			t.Errorf("%s: %s, want %s", code, got, line)
		}
	}
	decimals := map[string]int{"KES": 2, "UGX": 0, "TZS": 2, "RWF": 0, "JPY": 0, "KWD": 3, "TND": 3, "XCG": 2, "ISK": 0}
	money := currencies(t)
	for code, places := range decimals {
		if money[code].Decimals != places {
			t.Errorf("%s has %d decimals, want %d", code, money[code].Decimals, places)
		}
	}
	for _, gone := range []string{"BGN", "HRK", "ANG", "SLL", "ZWL", "CUC", "XAU", "XXX", "CLF"} {
		if _, ok := money[gone]; ok {
			t.Errorf("%s is in the catalog", gone)
		}
	}
}

// Databases and clients store these ids, so they must never change.
func TestIDsAreFixed(t *testing.T) {
	for got, want := range map[uuid.UUID]string{
		catalogdata.CountryID("KE"):   "019b76da-a800-7c4d-b050-57eed4c5b52d",
		catalogdata.CurrencyID("KES"): "019b76da-a800-79aa-8fd8-00d0efcf7c09",
	} {
		if got.String() != want {
			t.Errorf("id %s, want %s", got, want)
		}
		if got.Version() != 7 || got.Variant() != uuid.RFC4122 {
			t.Errorf("%s has version %d and variant %s", got, got.Version(), got.Variant())
		}
	}
	if catalogdata.CountryID("KE") == catalogdata.CurrencyID("KE") {
		t.Error("two catalogs share an id")
	}
}

func TestCheckCountryNamesEachFault(t *testing.T) {
	good := countries(t)["KE"]
	cases := map[string]struct {
		spoil func(*exchange.Country)
		want  []string
	}{
		"nothing":              {func(*exchange.Country) {}, nil},
		"no names":             {func(c *exchange.Country) { c.DisplayName, c.OfficialName, c.Nationality = "", "", "" }, []string{"/display_name required", "/official_name required", "/nationality required"}},
		"a space at the end":   {func(c *exchange.Country) { c.DisplayName = "Kenya " }, []string{"/display_name spaces"}},
		"a control character":  {func(c *exchange.Country) { c.DisplayName = "Ken\x00ya" }, []string{"/display_name characters"}},
		"broken UTF-8":         {func(c *exchange.Country) { c.OfficialName = "Ken\xffya" }, []string{"/official_name characters"}},
		"a text turned around": {func(c *exchange.Country) { c.DisplayName = "Kenya\u202e" }, []string{"/display_name characters"}},
		"a name too long":      {func(c *exchange.Country) { c.DisplayName = strings.Repeat("é", catalogdata.MaxTextLength+1) }, []string{"/display_name too_long"}},
		"the longest name":     {func(c *exchange.Country) { c.DisplayName = strings.Repeat("é", catalogdata.MaxTextLength) }, nil},
		"small letters":        {func(c *exchange.Country) { c.Alpha2Code, c.Alpha3Code = "ke", "ken" }, []string{"/alpha2_code format", "/alpha3_code format"}},
		"a line end":           {func(c *exchange.Country) { c.Alpha2Code = "KE\n" }, []string{"/alpha2_code format"}},
		"two digits":           {func(c *exchange.Country) { c.NumericCode = "04" }, []string{"/numeric_code format"}},
		"foreign digits":       {func(c *exchange.Country) { c.NumericCode = "٤٠٤" }, []string{"/numeric_code format"}},
		"no plus":              {func(c *exchange.Country) { c.PhoneCode = "254" }, []string{"/phone_code format"}},
		"a leading zero":       {func(c *exchange.Country) { c.PhoneCode = "+0254" }, []string{"/phone_code format"}},
		"an unknown region":    {func(c *exchange.Country) { c.Region = "EMEA" }, []string{"/region unknown"}},
		"a foreign subregion":  {func(c *exchange.Country) { c.Subregion = "Western Europe" }, []string{"/subregion unknown"}},
		"a rail, no currency":  {func(c *exchange.Country) { c.DefaultFiatCurrency = "" }, []string{"/default_fiat_currency required"}},
		"no rail, no currency": {func(c *exchange.Country) {
			c.DefaultFiatCurrency, c.SupportsMomo, c.SupportsBankPayout = "", false, false
		}, nil},
		"a malformed currency":  {func(c *exchange.Country) { c.DefaultFiatCurrency = "KSH1" }, []string{"/default_fiat_currency format"}},
		"a negative sort order": {func(c *exchange.Country) { c.SortOrder = -1 }, []string{"/sort_order out_of_range"}},
		"a huge sort order":     {func(c *exchange.Country) { c.SortOrder = catalogdata.MaxSortOrder + 1 }, []string{"/sort_order out_of_range"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := good
			tc.spoil(&c)
			checkFaults(t, catalogdata.CheckCountry(c), tc.want)
		})
	}
}

func TestCheckCurrencyNamesEachFault(t *testing.T) {
	good := currencies(t)["UGX"]
	cases := map[string]struct {
		spoil func(*exchange.FiatCurrency)
		want  []string
	}{
		"nothing":               {func(*exchange.FiatCurrency) {}, nil},
		"nothing filled in":     {func(c *exchange.FiatCurrency) { *c = exchange.FiatCurrency{} }, []string{"/code required", "/name required", "/numeric_code required", "/symbol required"}},
		"four letters":          {func(c *exchange.FiatCurrency) { c.Code = "USDT" }, []string{"/code format"}},
		"a long symbol":         {func(c *exchange.FiatCurrency) { c.Symbol = "shillings" }, []string{"/symbol too_long"}},
		"too many decimals":     {func(c *exchange.FiatCurrency) { c.Decimals = catalogdata.MaxDecimals + 1 }, []string{"/decimals out_of_range"}},
		"negative decimals":     {func(c *exchange.FiatCurrency) { c.Decimals = -1 }, []string{"/decimals out_of_range"}},
		"KES unlike the ledger": {func(c *exchange.FiatCurrency) { c.Code, c.Decimals = "KES", 0 }, []string{"/decimals fixed"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := good
			tc.spoil(&c)
			checkFaults(t, catalogdata.CheckCurrency(c), tc.want)
		})
	}
}

func checkFaults(t *testing.T, err error, want []string) {
	t.Helper()
	if want == nil {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if exchange.CodeOf(err) != exchange.CodeInvalid {
		t.Fatalf("error %v, want one with code invalid", err)
	}
	var got []string
	for _, f := range err.(*exchange.Error).Fields { //nolint:errorlint // the checks return it bare
		if f.Message == "" {
			t.Errorf("%s has no message", f.Pointer)
		}
		got = append(got, f.Pointer+" "+f.Code)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}
