package demo

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"

	"github.com/ethereum/go-ethereum/crypto"
	sdk "github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/tron"
	"kivuko/exchange"
)

// Stranger returns an unused address outside of our custody.
func Stranger(n exchange.Network) (string, error) {
	if n == exchange.Solana {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		return sdk.PublicKeyFromBytes(public).String(), err
	}
	key, err := crypto.GenerateKey()
	switch {
	case err != nil:
		return "", err
	case n == exchange.Ethereum:
		return crypto.PubkeyToAddress(key.PublicKey).Hex(), nil
	case n == exchange.Tron:
		return tron.AddressOfKey(key).String(), nil
	}
	return "", fmt.Errorf("there are no addresses for the network %q", n)
}
