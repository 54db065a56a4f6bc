package chain

import (
	"errors"
	"strings"
	"testing"

	"kivuko/exchange/money"
)

func TestReadTokens(t *testing.T) {
	parse := func(s string) (string, error) {
		if !strings.HasPrefix(s, "0x") {
			return "", errors.New("no address")
		}
		return strings.ToLower(s), nil
	}
	addresses, assets, err := ReadTokens("net", map[money.Asset]string{money.USDT: "0xA", money.USDC: "0xB"}, parse)
	if err != nil || addresses[money.USDT] != "0xa" || assets["0xb"] != money.USDC || len(addresses) != 2 || len(assets) != 2 {
		t.Errorf("%v, %v, %v", addresses, assets, err)
	}
	for want, tokens := range map[string]map[money.Asset]string{
		`net: Tokens: "ETH" is not a token`:                    {money.ETH: "0xA"},
		"net: Tokens[USDC]: no address":                        {money.USDC: "A"},
		"net: Tokens: USDC and USDT have the same address 0xA": {money.USDT: "0xA", money.USDC: "0xa"},
	} {
		if _, _, err := ReadTokens("net", tokens, parse); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
