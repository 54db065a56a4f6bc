package main

import (
	"strings"
	"testing"

	"kivuko/chain/ethereum"
	"kivuko/chain/solana"
	"kivuko/chain/tron"
	"kivuko/exchange/money"
)

// TestAddressesThatCantBePaid checks that addresses are refused early which could not be paid later, when we have the money.
// The deny list accepts them all the same.
func TestAddressesThatCantBePaid(t *testing.T) {
	for name, c := range map[string]struct {
		parse, read func(string) (string, error)
		token       string
		lost        []string
		fine        string
	}{
		"ethereum": {ethereum.ParseAddress, ethereum.ReadAddress, "0xdAC17F958D2ee523a2206206994597C13D831ec7", []string{
			"0x0000000000000000000000000000000000000000", "0x000000000000000000000000000000000000dEaD",
			"0x000000000000000000000000000000000000dead", "0x0000000000000000000000000000000000000001",
			"0x0000000000000000000000000000000000000011", "0xdac17f958d2ee523a2206206994597c13d831ec7",
		}, "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"},
		"tron": {tron.ParseAddress, tron.ReadAddress, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", []string{
			"T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb", "TLsV52sRDL79HXGGm9yzwKibb6BeruhUzy",
		}, "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"},
		"solana": {solana.ParseAddress, solana.ReadAddress, "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", []string{
			"11111111111111111111111111111111", "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "1nc1nerator11111111111111111111111111111111",
		}, ""},
	} {
		check := wallets(c.parse, map[money.Asset]string{money.USDT: c.token})
		for _, address := range append(c.lost, c.token) {
			if got, err := check(address); err == nil {
				t.Errorf("%s: %s passes as %s", name, address, got)
			}
			if got, err := c.read(address); err != nil || !strings.EqualFold(got, address) {
				t.Errorf("%s: %s is read as %q, %v", name, address, got, err)
			}
		}
		if got, err := c.read(c.token + "0"); err == nil {
			t.Errorf("%s: %s is read as %s", name, c.token+"0", got)
		}
		if c.fine == "" {
			continue
		}
		if got, err := check(c.fine); err != nil || got != c.fine {
			t.Errorf("%s: %s is %q, %v", name, c.fine, got, err)
		}
	}
}
