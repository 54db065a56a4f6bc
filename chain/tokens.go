package chain

import (
	"fmt"
	"maps"
	"slices"

	"kivuko/exchange/money"
)

// ReadTokens reads the token addresses of a configuration into both directions. Operators copy these addresses from
// explorers, so only a stablecoin may have one, it must be valid on the network, and no two tokens may share it. Errors
// begin with the driver's name.
func ReadTokens[A comparable](driver string, tokens map[money.Asset]string, parse func(string) (A, error)) (map[money.Asset]A, map[A]money.Asset, error) {
	addresses, assets := make(map[money.Asset]A, len(tokens)), make(map[A]money.Asset, len(tokens))
	for _, asset := range slices.Sorted(maps.Keys(tokens)) {
		if !asset.Stablecoin() {
			return nil, nil, fmt.Errorf("%s: Tokens: %q is not a token that Kivuko exchanges", driver, string(asset))
		}
		address, err := parse(tokens[asset])
		if err != nil {
			return nil, nil, fmt.Errorf("%s: Tokens[%s]: %w", driver, asset, err)
		}
		if other, taken := assets[address]; taken {
			return nil, nil, fmt.Errorf("%s: Tokens: %s and %s have the same address %s", driver, other, asset, tokens[asset])
		}
		addresses[asset], assets[address] = address, asset
	}
	return addresses, assets, nil
}
