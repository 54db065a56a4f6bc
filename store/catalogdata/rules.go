package catalogdata

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Limits of catalog fields, in characters for texts. The tables' checks enforce the same limits.
const (
	MaxTextLength   = 120
	MaxSymbolLength = 8
	MaxDecimals     = 4 // the maximum in ISO 4217
	MaxSortOrder    = 100000
)

var (
	twoLetters   = regexp.MustCompile(`^[A-Z]{2}$`)
	threeLetters = regexp.MustCompile(`^[A-Z]{3}$`)
	threeDigits  = regexp.MustCompile(`^[0-9]{3}$`)
	phonePrefix  = regexp.MustCompile(`^\+[1-9][0-9]{0,6}$`)
)

// subregions are the areas of UN M49 by region: the narrowest ones, which the embedded rows use, and the two wider
// ones that M49 calls subregions too.
var subregions = map[string][]string{
	"Africa":     {"Eastern Africa", "Middle Africa", "Northern Africa", "Southern Africa", "Sub-Saharan Africa", "Western Africa"},
	"Americas":   {"Caribbean", "Central America", "Latin America and the Caribbean", "Northern America", "South America"},
	"Antarctica": {"Antarctica"},
	"Asia":       {"Central Asia", "Eastern Asia", "South-eastern Asia", "Southern Asia", "Western Asia"},
	"Europe":     {"Eastern Europe", "Northern Europe", "Southern Europe", "Western Europe"},
	"Oceania":    {"Australia and New Zealand", "Melanesia", "Micronesia", "Polynesia"},
}

// CheckCountry checks a country against the rules of the catalog. It returns nil or a CodeInvalid error that names
// every wrong field. The database checks that the default currency is in the catalog.
func CheckCountry(c exchange.Country) error {
	var f faults
	f.name("/display_name", c.DisplayName, MaxTextLength)
	f.name("/official_name", c.OfficialName, MaxTextLength)
	f.form("/alpha2_code", c.Alpha2Code, twoLetters, "must be two capital letters such as KE (ISO 3166-1 alpha-2)")
	f.form("/alpha3_code", c.Alpha3Code, threeLetters, "must be three capital letters such as KEN (ISO 3166-1 alpha-3)")
	f.form("/numeric_code", c.NumericCode, threeDigits, "must be three digits such as 404 (ISO 3166-1 numeric)")
	f.form("/phone_code", c.PhoneCode, phonePrefix, "must be a plus and one to seven digits such as +254")
	if n := phonenumbers.GetCountryCodeForRegion(c.Alpha2Code); n != 0 && phonePrefix.MatchString(c.PhoneCode) {
		if prefix := fmt.Sprintf("+%d", n); !strings.HasPrefix(c.PhoneCode, prefix) {
			f.add("/phone_code", "mismatch", "must begin with %s, the prefix of %s", prefix, c.Alpha2Code)
		}
	}
	f.name("/nationality", c.Nationality, MaxTextLength)
	f.area(c.Region, c.Subregion)
	rail := c.SupportsMomo || c.SupportsBankPayout
	if c.DefaultFiatCurrency != "" || rail {
		f.form("/default_fiat_currency", c.DefaultFiatCurrency, threeLetters,
			"must be three capital letters such as KES (ISO 4217); it may be empty only where there is neither mobile money nor bank payout")
	}
	f.between("/sort_order", c.SortOrder, 0, MaxSortOrder)
	return exchange.Invalid(f...)
}

// CheckCurrency checks a currency against the rules of the catalog. It returns nil or a CodeInvalid error that names
// every wrong field.
func CheckCurrency(c exchange.FiatCurrency) error {
	var f faults
	f.form("/code", c.Code, threeLetters, "must be three capital letters such as KES (ISO 4217)")
	f.name("/name", c.Name, MaxTextLength)
	f.form("/numeric_code", c.NumericCode, threeDigits, "must be three digits such as 404 (ISO 4217 numeric)")
	f.name("/symbol", c.Symbol, MaxSymbolLength)
	f.between("/decimals", c.Decimals, 0, MaxDecimals)
	f.between("/sort_order", c.SortOrder, 0, MaxSortOrder)
	f.ledger(c)
	return exchange.Invalid(f...)
}

// Booked reports whether Kivuko keeps its books in a currency. Such a row can't be deleted from the catalog.
func Booked(code string) bool { return money.Asset(code).Fiat() }

// faults gathers the broken rules of one object.
type faults []exchange.FieldError

func (f *faults) add(pointer, code, format string, args ...any) {
	*f = append(*f, exchange.FieldError{Pointer: pointer, Code: code, Message: fmt.Sprintf(format, args...)})
}

// name checks a display text.
func (f *faults) name(pointer, text string, longest int) {
	switch {
	case text == "":
		f.add(pointer, "required", "must not be empty")
	case !utf8.ValidString(text) || !printable(text):
		f.add(pointer, "characters", "must contain only printable characters")
	case utf8.RuneCountInString(text) > longest:
		f.add(pointer, "too_long", "must have at most %d characters", longest)
	case text != strings.TrimSpace(text):
		f.add(pointer, "spaces", "must not begin or end with a space")
	}
}

// form checks a code.
func (f *faults) form(pointer, text string, pattern *regexp.Regexp, rule string) {
	switch {
	case text == "":
		f.add(pointer, "required", "%s", rule)
	case !pattern.MatchString(text):
		f.add(pointer, "format", "%s", rule)
	}
}

func (f *faults) between(pointer string, n, low, high int) {
	if n < low || n > high {
		f.add(pointer, "out_of_range", "must be a whole number from %d to %d", low, high)
	}
}

// area checks that a region is one of M49's and contains the subregion.
func (f *faults) area(region, subregion string) {
	within, ok := subregions[region]
	if !ok {
		f.add("/region", "unknown", "must be Africa, Americas, Antarctica, Asia, Europe or Oceania (UN M49)")
		return
	}
	if slices.Contains(within, subregion) {
		return
	}
	f.add("/subregion", "unknown", "must be an area of %s in UN M49: %s", region, strings.Join(within, ", "))
}

// ledger refuses decimals other than the ledger's for a currency of Kivuko's books: a client that formats by the
// catalog would misread its money.
func (f *faults) ledger(c exchange.FiatCurrency) {
	if a := money.Asset(c.Code); a.Fiat() && c.Decimals != int(a.Scale()) {
		f.add("/decimals", "fixed", "must be %d, the decimal places in which the ledger keeps %s", a.Scale(), c.Code)
	}
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
