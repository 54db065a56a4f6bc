package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/catalogdata"
)

// wireCountry is a country with the fields of the interface description.
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

// into overwrites a text with the field of that name when the request has it.
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

// readCountry applies a request's fields to a country. The store checks the rules of the catalog, so that seeds and
// requests follow the same rules.
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

// catalog serves one shared catalog. Countries and currencies have the same operations; its fields are the differences.
type catalog[T any] struct {
	plural string // the listing's field
	path   string // of the collection
	list   func(ctx context.Context, activeOnly bool) ([]T, error)
	find   func(ctx context.Context, id uuid.UUID) (T, error)
	add    func(ctx context.Context, row T, by exchange.Principal) (T, error)
	change func(ctx context.Context, row T, by exchange.Principal) (T, error)
	remove func(ctx context.Context, id uuid.UUID, by exchange.Principal) error
	read   func(f *form, row T, creating bool) T // applies the request's fields to a row
	blank  func(id uuid.UUID) T
	id     func(T) uuid.UUID
	moment func(T) time.Time // of the last change; a later change has a later one
	wire   func(T) any
}

func (s *server) countries() catalog[exchange.Country] {
	return catalog[exchange.Country]{
		plural: "countries", path: "/api/v1/auth/countries",
		list: s.Store.ListCountries, find: s.Store.Country, add: s.Store.CreateCountry, change: s.Store.UpdateCountry,
		remove: s.Store.DeleteCountry, read: (*form).readCountry,
		blank: func(id uuid.UUID) exchange.Country { return exchange.Country{ID: id} },
		id:    func(c exchange.Country) uuid.UUID { return c.ID }, moment: func(c exchange.Country) time.Time { return c.UpdatedAt },
		wire: func(c exchange.Country) any { return countryWire(c) },
	}
}

func (s *server) currencies() catalog[exchange.FiatCurrency] {
	return catalog[exchange.FiatCurrency]{
		plural: "fiat_currencies", path: "/api/v1/auth/fiat-currencies",
		list: s.Store.ListFiatCurrencies, find: s.Store.FiatCurrency, add: s.Store.CreateFiatCurrency,
		change: s.Store.UpdateFiatCurrency, remove: s.Store.DeleteFiatCurrency, read: (*form).readCurrency,
		blank: func(id uuid.UUID) exchange.FiatCurrency { return exchange.FiatCurrency{ID: id} },
		id:    func(c exchange.FiatCurrency) uuid.UUID { return c.ID }, moment: func(c exchange.FiatCurrency) time.Time { return c.UpdatedAt },
		wire: func(c exchange.FiatCurrency) any { return currencyWire(c) },
	}
}

// listActive and listAll return the whole catalog: the interface description gives the listings no pages.
func (k catalog[T]) listActive(c *call) error { return k.answer(c, true) }
func (k catalog[T]) listAll(c *call) error    { return k.answer(c, false) }

func (k catalog[T]) answer(c *call, activeOnly bool) error {
	all, err := k.list(c.ctx, activeOnly)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{k.plural: each(all, k.wire)})
}

// version is the version of a row, in microseconds like the database's times.
func (k catalog[T]) version(row T) int64 { return k.moment(row).UnixMicro() }

func (k catalog[T]) get(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	row, err := k.find(c.ctx, id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.tagged(k.version(row), k.wire(row))
}

func (k catalog[T]) create(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	row := k.read(f, k.blank(c.objectID), true)
	if err := f.done(); err != nil {
		return err
	}
	created, err := k.add(c.ctx, row, c.who)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, k.path+"/"+k.id(created).String())
	return c.json(http.StatusCreated, k.wire(created))
}

func (k catalog[T]) patch(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	// The request is read once without the row first, so that its errors come before a "not found".
	k.read(f, k.blank(uuid.Nil), false)
	if err := f.donePatch(); err != nil {
		return err
	}
	before, err := k.find(c.ctx, id)
	if err != nil {
		return hideAbsence(err)
	}
	// The store changes only the version that was read.
	if len(c.ifVersions) > 0 && !slices.Contains(c.ifVersions, k.version(before)) {
		return exchange.ChangedMeanwhile()
	}
	after, err := k.change(c.ctx, k.read(f, before, false), c.who)
	if err != nil {
		return hideAbsence(err)
	}
	return c.tagged(k.version(after), k.wire(after))
}

func (k catalog[T]) delete(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	if err := k.remove(c.ctx, id, c.who); err != nil {
		return hideAbsence(err)
	}
	return c.empty()
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
