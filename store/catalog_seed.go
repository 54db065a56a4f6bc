package store

import (
	"context"

	"kivuko/exchange"
	"kivuko/store/catalogdata"
)

// Seeds never replace an existing row with the same id, code or name, and never restore a deleted one. A country whose
// currency was deleted is seeded without one.
const (
	seedCurrencies = `INSERT INTO fiat_currencies (` + currencyColumns + `)
		SELECT ` + currencyColumns + ` FROM jsonb_populate_recordset(NULL::fiat_currencies, $1::jsonb) seed
		WHERE NOT EXISTS (SELECT FROM catalog_removals x WHERE x.catalog = 'fiat_currency' AND x.code = seed.code)
		ON CONFLICT DO NOTHING`
	seedCountries = `INSERT INTO countries (` + countryColumns + `)
		SELECT seed.id, display_name, official_name, alpha2_code, alpha3_code, seed.numeric_code, phone_code, nationality,
			region, subregion, currency.code, supports_momo, supports_bank_payout, seed.sort_order, seed.is_active, seed.created_at, seed.updated_at
		FROM jsonb_populate_recordset(NULL::countries, $1::jsonb) seed LEFT JOIN fiat_currencies currency ON currency.code = seed.default_fiat_currency
		WHERE NOT EXISTS (SELECT FROM catalog_removals x WHERE x.catalog = 'country' AND x.code = seed.alpha2_code)
		ON CONFLICT DO NOTHING`
)

// SeedCatalogs adds the embedded countries and currencies that are missing. It never changes a row or restores one
// that an admin deleted, so it may run at every start, also concurrently.
func (s *Store) SeedCatalogs(ctx context.Context) error {
	allCountries, err := catalogdata.Countries()
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "The embedded countries can't be read.")
	}
	allCurrencies, err := catalogdata.Currencies()
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "The embedded currencies can't be read.")
	}
	now := s.now()
	var rows, money []map[string]any
	for _, c := range allCountries {
		c.CreatedAt, c.UpdatedAt = now, now
		rows = append(rows, countryFields(c))
	}
	for _, c := range allCurrencies {
		c.CreatedAt, c.UpdatedAt = now, now
		money = append(money, currencyFields(c))
	}
	return s.inTx(ctx, "catalog", func(u unitTx) error {
		if err := seedCatalog(ctx, u, catalogCurrency, seedCurrencies, money); err != nil {
			return err
		}
		return seedCatalog(ctx, u, catalogCountry, seedCountries, rows)
	})
}

// seedCatalog inserts the missing rows of one catalog and writes one audit row with their number.
func seedCatalog(ctx context.Context, u unitTx, catalog, query string, rows []map[string]any) error {
	n, err := insertCatalogRows(ctx, u, query, rows...)
	if err != nil || n == 0 {
		return err
	}
	return catalogChanged(ctx, u, exchange.System("seed"), catalogChange{catalog: catalog, verb: "seed", after: map[string]any{"added": n}})
}
