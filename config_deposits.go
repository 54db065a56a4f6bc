package main

import (
	"fmt"
	"maps"
	"slices"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// DepositsConfig is how deposits on the chains are watched.
type DepositsConfig struct {
	// The first block to read on a network that was not read before (`tron:1`). By default the newest final block.
	From map[string]uint64 `env:"FROM" for:"chain"`
	// The smallest deposit of each asset that is acted upon. A smaller one is only booked.
	Minimum map[string]string `env:"MINIMUM" envDefault:"USDT:0.01,USDC:0.01,TRX:0.1,ETH:0.00001,SOL:0.0001" for:"chain"`
}

// checkDeposits checks the rules for watching a network.
func (c Config) checkDeposits(n *need) {
	for name := range c.Deposits.From {
		n.rule(exchange.Network(name).Valid(), fmt.Sprintf("KIVUKO_DEPOSITS_FROM: there is no network %q", name))
	}
	if _, err := c.Deposits.minimum(); err != nil {
		n.problems = append(n.problems, err.Error())
	}
}

func (c DepositsConfig) minimum() (map[money.Asset]money.Amount, error) {
	least := map[money.Asset]money.Amount{}
	for _, name := range slices.Sorted(maps.Keys(c.Minimum)) {
		if !money.Asset(name).Valid() || money.Asset(name).Fiat() {
			return nil, fmt.Errorf("KIVUKO_DEPOSITS_MINIMUM: %q is not a crypto asset", name)
		}
		m, err := money.Parse(money.Asset(name), c.Minimum[name])
		if err != nil {
			return nil, fmt.Errorf("KIVUKO_DEPOSITS_MINIMUM: the amount of %s: %w", name, err)
		}
		least[m.Asset()] = m
	}
	return least, nil
}
