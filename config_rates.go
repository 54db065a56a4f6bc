package main

import (
	"time"

	"kivuko/exchange"
)

// RatesConfig is the source of FX rates; without a URL, admins enter all rates. The protocol is that of
// service.Rates.
type RatesConfig struct {
	// The address of a source of FX rates. If empty, admins enter all rates.
	URL string `env:"URL" for:"flows" production:"https"`
	// Sent to the source as a bearer token.
	Token string `env:"TOKEN" for:"flows" secret:"true"`
	// The name of the source on the rates that it gave: small letters, not `admin`.
	Source string `env:"SOURCE" envDefault:"feed" for:"flows"`
	// How long a rate is used for prices, from its valid_from on: a minute to a week.
	Life time.Duration `env:"LIFE" envDefault:"1h" for:"flows"`
}

func (r RatesConfig) check(n *need) {
	n.rule(exchange.ValidRateSource(r.Source) && r.Source != exchange.RateSourceAdmin, "KIVUKO_RATES_SOURCE must be a short name in small letters, and not admin")
	n.rule(r.Life >= exchange.MinRateLife && r.Life <= exchange.MaxRateLife, "KIVUKO_RATES_LIFE must be between a minute and a week")
}
