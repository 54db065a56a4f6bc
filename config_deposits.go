package main

import (
	"fmt"
	"maps"
	"slices"

	"kivuko/exchange/money"
)

// DepositsConfig is how deposits on the chains are watched.
type DepositsConfig struct {
	// From is the first block to read of a network where nothing was read before ("tron:1"). Without it
	// reading begins with what becomes final after the first start.
	From map[string]uint64 `env:"FROM"`
	// Minimum is the least amount that wakes anybody. Less is booked all the same.
	Minimum map[string]string `env:"MINIMUM" envDefault:"USDT:0.01,USDC:0.01,TRX:0.1,ETH:0.00001,SOL:0.0001"`
}

func (c DepositsConfig) minimum() (map[money.Asset]money.Amount, error) {
	least := map[money.Asset]money.Amount{}
	for _, name := range slices.Sorted(maps.Keys(c.Minimum)) {
		if !money.Asset(name).Valid() || money.Asset(name).Fiat() {
			return nil, fmt.Errorf("KIVUKO_DEPOSITS_MINIMUM: %q is no crypto asset", name)
		}
		m, err := money.Parse(money.Asset(name), c.Minimum[name])
		if err != nil {
			return nil, fmt.Errorf("KIVUKO_DEPOSITS_MINIMUM: the amount of %s: %w", name, err)
		}
		least[m.Asset()] = m
	}
	return least, nil
}
