// Package catalogdata contains the initial rows of Kivuko's shared catalogs: every country of ISO 3166-1 and every
// currency of ISO 4217 that is legal tender somewhere.
//
// Contents of the tables:
//
//   - Codes are those of ISO 3166-1 and ISO 4217 as in force in 2026 (the euro in Bulgaria, XCG in
//     Curaçao and Sint Maarten, ZWG in Zimbabwe). Funds, bond market units, metals, test codes and
//     units of account of ISO 4217 are omitted: they are not used for payments.
//   - A currency's decimals are the minor units of ISO 4217, not the places that people use in shops.
//   - A region and its subregion are the widest and the narrowest area of the UN M49 scheme
//     ("Africa", "Eastern Africa"). M49 puts Antarctica in no region; here it is its own.
//   - A phone code is the country's prefix of ITU-T E.164, with the area code where that alone tells
//     a member of the North American plan from its neighbours (+1876). A territory without a code of
//     its own has that of the country that serves it (Jersey +44, Christmas Island +61). Where a
//     country has several, the first assigned stands (Dominican Republic +1809).
//   - Antarctica has no currency of its own, so its default is empty.
//
// A country is active when it has a payment rail of Kivuko, so that a customer there can pay or be paid. Today that is
// only Kenya, by mobile money and by bank payout; a country from which customers only send crypto needs no rail and
// stays inactive. Likewise the Kenyan shilling is the only active currency. All other rows are present but inactive,
// so that opening a corridor is one edit by an admin without new data.
//
// Active rows come first in their lists (sort order 1). The other countries follow in English alphabetical order, ten
// apart, so that a row can be inserted between two others.
package catalogdata

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"kivuko/exchange"
)

//go:embed countries.csv
var countriesCSV []byte

//go:embed currencies.csv
var currenciesCSV []byte

var (
	countryColumns = []string{
		"display_name", "official_name", "alpha2_code", "alpha3_code", "numeric_code", "phone_code", "nationality",
		"region", "subregion", "default_fiat_currency", "supports_momo", "supports_bank_payout", "sort_order", "is_active",
	}
	currencyColumns = []string{"code", "name", "numeric_code", "symbol", "decimals", "sort_order", "is_active"}
)

// seedMillis is the time part of every id created here: 2026-01-01T00:00:00Z in Unix milliseconds.
const seedMillis uint64 = 1767225600000

// ID is the id of a seeded row. Kivuko's ids are UUIDs of version 7 (RFC 9562, section 5.7); these have that layout
// too, but a fixed time, and take their random bits from a hash of the code. So Kenya has the same id in every
// database, fixtures and clients may rely on it, and seeding twice can't create a second row. Guessable ids are
// harmless: the catalogs are public.
func ID(catalog, code string) uuid.UUID {
	hash := sha256.Sum256([]byte("kivuko:" + catalog + ":" + code))
	id := uuid.UUID(hash[:16])
	random := uint64(binary.BigEndian.Uint16(id[6:8]))
	binary.BigEndian.PutUint64(id[:8], seedMillis<<16|random)
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// CountryID is the id of a seeded country.
func CountryID(alpha2 string) uuid.UUID { return ID("country", alpha2) }

// CurrencyID is the id of a seeded currency.
func CurrencyID(code string) uuid.UUID { return ID("fiat_currency", code) }

// Countries reads the embedded countries, in the order of their alpha-2 codes. Their times are zero.
// An error means that the embedded file is broken, which the tests of this package rule out.
func Countries() ([]exchange.Country, error) {
	rows, err := table("countries.csv", countriesCSV, countryColumns)
	if err != nil {
		return nil, err
	}
	all := make([]exchange.Country, 0, len(rows))
	for _, r := range rows {
		c := exchange.Country{
			ID: CountryID(r.text("alpha2_code")), DisplayName: r.text("display_name"), OfficialName: r.text("official_name"),
			Alpha2Code: r.text("alpha2_code"), Alpha3Code: r.text("alpha3_code"), NumericCode: r.text("numeric_code"),
			PhoneCode: r.text("phone_code"), Nationality: r.text("nationality"), Region: r.text("region"),
			Subregion: r.text("subregion"), DefaultFiatCurrency: r.text("default_fiat_currency"),
			SupportsMomo: r.flag("supports_momo"), SupportsBankPayout: r.flag("supports_bank_payout"),
			SortOrder: r.number("sort_order"), IsActive: r.flag("is_active"),
		}
		if r.err != nil {
			return nil, r.err
		}
		if err := CheckCountry(c); err != nil {
			return nil, fmt.Errorf("countries.csv: %s: %w", c.Alpha2Code, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// Currencies reads the embedded currencies, in the order of their codes. Their times are zero. An
// error means that the embedded file is broken, which the tests of this package rule out.
func Currencies() ([]exchange.FiatCurrency, error) {
	rows, err := table("currencies.csv", currenciesCSV, currencyColumns)
	if err != nil {
		return nil, err
	}
	all := make([]exchange.FiatCurrency, 0, len(rows))
	for _, r := range rows {
		c := exchange.FiatCurrency{
			ID: CurrencyID(r.text("code")), Code: r.text("code"), Name: r.text("name"), NumericCode: r.text("numeric_code"),
			Symbol: r.text("symbol"), Decimals: r.number("decimals"), SortOrder: r.number("sort_order"), IsActive: r.flag("is_active"),
		}
		if r.err != nil {
			return nil, r.err
		}
		if err := CheckCurrency(c); err != nil {
			return nil, fmt.Errorf("currencies.csv: %s: %w", c.Code, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// record is a line of an embedded table; err is the first cell that could not be read.
type record struct {
	file    string
	columns []string
	cells   []string
	err     error
}

func table(file string, data []byte, columns []string) ([]*record, error) {
	lines, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(lines) == 0 || !slices.Equal(lines[0], columns) {
		return nil, fmt.Errorf("%s: the first line must be %v", file, columns)
	}
	rows := make([]*record, 0, len(lines)-1)
	for _, cells := range lines[1:] {
		rows = append(rows, &record{file: file, columns: columns, cells: cells})
	}
	return rows, nil
}

func (r *record) text(column string) string { return r.cells[slices.Index(r.columns, column)] }

func (r *record) flag(column string) bool {
	v, err := strconv.ParseBool(r.text(column))
	r.note(column, err)
	return v
}

func (r *record) number(column string) int {
	v, err := strconv.Atoi(r.text(column))
	r.note(column, err)
	return v
}

func (r *record) note(column string, err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s: %s of %s: %w", r.file, column, r.cells[0], err)
	}
}
