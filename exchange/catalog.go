package exchange

import (
	"time"

	"github.com/google/uuid"
)

// Country is a row of the country catalog (ISO 3166-1), with what Kivuko can do there.
type Country struct {
	ID                  uuid.UUID
	DisplayName         string
	OfficialName        string
	Alpha2Code          string
	Alpha3Code          string
	NumericCode         string // three digits
	PhoneCode           string // with a leading plus
	Nationality         string
	Region              string
	Subregion           string
	DefaultFiatCurrency string // ISO 4217
	SupportsMomo        bool
	SupportsBankPayout  bool
	SortOrder           int
	IsActive            bool
	CreatedAt           time.Time
	UpdatedAt           time.Time
}

// FiatCurrency is a row of the currency catalog (ISO 4217).
type FiatCurrency struct {
	ID          uuid.UUID
	Code        string // three letters
	Name        string
	NumericCode string
	Symbol      string
	Decimals    int
	SortOrder   int
	IsActive    bool
	CreatedAt   time.Time
	UpdatedAt   time.Time
}
