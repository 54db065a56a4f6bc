package api

import (
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/catalogdata"
)

// wireCountry is a country with the fields of interface.md.
type wireCountry struct {
	ID                  uuid.UUID `json:"id"`
	DisplayName         string    `json:"display_name"`
	OfficialName        string    `json:"official_name"`
	Alpha2Code          string    `json:"alpha2_code"`
	Alpha3Code          string    `json:"alpha3_code"`
	NumericCode         string    `json:"numeric_code"`
	PhoneCode           string    `json:"phone_code"`
	Nationality         string    `json:"nationality"`
	Region              string    `json:"region"`
	Subregion           string    `json:"subregion"`
	DefaultFiatCurrency string    `json:"default_fiat_currency"`
	SupportsMomo        bool      `json:"supports_momo"`
	SupportsBankPayout  bool      `json:"supports_bank_payout"`
	SortOrder           int       `json:"sort_order"`
	IsActive            bool      `json:"is_active"`
	CreatedAt           timestamp `json:"created_at"`
	UpdatedAt           timestamp `json:"updated_at"`
}

func countryWire(c exchange.Country) wireCountry {
	return wireCountry{
		ID: c.ID, DisplayName: c.DisplayName, OfficialName: c.OfficialName, Alpha2Code: c.Alpha2Code, Alpha3Code: c.Alpha3Code,
		NumericCode: c.NumericCode, PhoneCode: c.PhoneCode, Nationality: c.Nationality, Region: c.Region, Subregion: c.Subregion,
		DefaultFiatCurrency: c.DefaultFiatCurrency, SupportsMomo: c.SupportsMomo, SupportsBankPayout: c.SupportsBankPayout,
		SortOrder: c.SortOrder, IsActive: c.IsActive, CreatedAt: stamp(c.CreatedAt), UpdatedAt: stamp(c.UpdatedAt),
	}
}

// wireCurrency is a fiat currency.
type wireCurrency struct {
	ID          uuid.UUID `json:"id"`
	Code        string    `json:"code"`
	Name        string    `json:"name"`
	NumericCode string    `json:"numeric_code"`
	Symbol      string    `json:"symbol"`
	Decimals    int       `json:"decimals"`
	SortOrder   int       `json:"sort_order"`
	IsActive    bool      `json:"is_active"`
	CreatedAt   timestamp `json:"created_at"`
	UpdatedAt   timestamp `json:"updated_at"`
}

func currencyWire(c exchange.FiatCurrency) wireCurrency {
	return wireCurrency{c.ID, c.Code, c.Name, c.NumericCode, c.Symbol, c.Decimals, c.SortOrder, c.IsActive, stamp(c.CreatedAt), stamp(c.UpdatedAt)}
}

// into overwrites a text with the field of that name when the request has it, or must have it.
func (f *form) into(dest *string, name string, required bool) {
	v := f.text(name, required, catalogdata.MaxTextLength)
	if f.has(name) {
		*dest = v
	}
}

func (f *form) intoFlag(dest *bool, name string) {
	if v := f.boolean(name, false); v != nil {
		*dest = *v
	}
}

func (f *form) intoNumber(dest *int, name string, required bool, most int) {
	if v := f.integer(name, required, 0, most); v != nil {
		*dest = *v
	}
}

// readCountry lays a request's fields over a country. The rules of the catalog itself are held by
// the store, so that seeds and requests obey the same.
func (f *form) readCountry(c exchange.Country, creating bool) exchange.Country {
	f.into(&c.DisplayName, "display_name", creating)
	f.into(&c.OfficialName, "official_name", creating)
	f.into(&c.Alpha2Code, "alpha2_code", creating)
	f.into(&c.Alpha3Code, "alpha3_code", creating)
	f.into(&c.NumericCode, "numeric_code", creating)
	f.into(&c.PhoneCode, "phone_code", creating)
	f.into(&c.Nationality, "nationality", creating)
	f.into(&c.Region, "region", creating)
	f.into(&c.Subregion, "subregion", creating)
	f.into(&c.DefaultFiatCurrency, "default_fiat_currency", false)
	f.intoFlag(&c.SupportsMomo, "supports_momo")
	f.intoFlag(&c.SupportsBankPayout, "supports_bank_payout")
	f.intoNumber(&c.SortOrder, "sort_order", false, catalogdata.MaxSortOrder)
	f.intoFlag(&c.IsActive, "is_active")
	return c
}

func (f *form) readCurrency(c exchange.FiatCurrency, creating bool) exchange.FiatCurrency {
	f.into(&c.Code, "code", creating)
	f.into(&c.Name, "name", creating)
	f.into(&c.NumericCode, "numeric_code", creating)
	f.into(&c.Symbol, "symbol", creating)
	f.intoNumber(&c.Decimals, "decimals", creating, catalogdata.MaxDecimals)
	f.intoNumber(&c.SortOrder, "sort_order", false, catalogdata.MaxSortOrder)
	f.intoFlag(&c.IsActive, "is_active")
	return c
}

// catalogList answers with the whole catalog: interface.md gives the listings no pages.
func (s *server) answerCountries(c *call, activeOnly bool) error {
	all, err := s.Store.ListCountries(c.ctx, activeOnly)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"countries": each(all, countryWire)})
}

func (s *server) listCountries(c *call) error    { return s.answerCountries(c, true) }
func (s *server) listAllCountries(c *call) error { return s.answerCountries(c, false) }

func (s *server) getCountry(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	country, err := s.Store.Country(c.ctx, id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, countryWire(country))
}

func (s *server) createCountry(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	country := f.readCountry(exchange.Country{ID: c.objectID}, true)
	if err := f.done(); err != nil {
		return err
	}
	created, err := s.Store.CreateCountry(c.ctx, country, c.who)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, "/api/v1/auth/countries/"+created.ID.String())
	return c.json(http.StatusCreated, countryWire(created))
}

func (s *server) patchCountry(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	f, err := c.body()
	if err != nil {
		return err
	}
	// The request is read once on its own first: its faults come before the question whether the row exists.
	f.readCountry(exchange.Country{}, false)
	if err := f.donePatch(); err != nil {
		return err
	}
	before, err := s.Store.Country(c.ctx, id)
	if err != nil {
		return hideAbsence(err)
	}
	after, err := s.Store.UpdateCountry(c.ctx, f.readCountry(before, false), c.who)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, countryWire(after))
}

// donePatch is done for a PATCH, which must change something.
func (f *form) donePatch() error {
	if err := f.done(); err != nil {
		return err
	}
	if len(f.values) == 0 {
		return exchange.Invalid(exchange.FieldError{Pointer: "", Code: "required", Message: "must change at least one field"})
	}
	return nil
}

func (s *server) deleteCountry(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	if err := s.Store.DeleteCountry(c.ctx, id, c.who); err != nil {
		return hideAbsence(err)
	}
	return c.empty()
}

func (s *server) answerCurrencies(c *call, activeOnly bool) error {
	all, err := s.Store.ListFiatCurrencies(c.ctx, activeOnly)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"fiat_currencies": each(all, currencyWire)})
}

func (s *server) listCurrencies(c *call) error    { return s.answerCurrencies(c, true) }
func (s *server) listAllCurrencies(c *call) error { return s.answerCurrencies(c, false) }

func (s *server) getCurrency(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	currency, err := s.Store.FiatCurrency(c.ctx, id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, currencyWire(currency))
}

func (s *server) createCurrency(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	currency := f.readCurrency(exchange.FiatCurrency{ID: c.objectID}, true)
	if err := f.done(); err != nil {
		return err
	}
	created, err := s.Store.CreateFiatCurrency(c.ctx, currency, c.who)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, "/api/v1/auth/fiat-currencies/"+created.ID.String())
	return c.json(http.StatusCreated, currencyWire(created))
}

func (s *server) patchCurrency(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	f, err := c.body()
	if err != nil {
		return err
	}
	f.readCurrency(exchange.FiatCurrency{}, false)
	if err := f.donePatch(); err != nil {
		return err
	}
	before, err := s.Store.FiatCurrency(c.ctx, id)
	if err != nil {
		return hideAbsence(err)
	}
	after, err := s.Store.UpdateFiatCurrency(c.ctx, f.readCurrency(before, false), c.who)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, currencyWire(after))
}

func (s *server) deleteCurrency(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	if err := s.Store.DeleteFiatCurrency(c.ctx, id, c.who); err != nil {
		return hideAbsence(err)
	}
	return c.empty()
}
