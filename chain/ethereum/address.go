package ethereum

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// An Ethereum address is the last 20 bytes of the Keccak-256 of a public key, written as 0x and 40 hexadecimal digits. Mixed
// case is a checksum (EIP-55); a single case has none.
const (
	addressDigits = 2 * common.AddressLength
	maxTextLength = 128 // longer texts are refused unread
)

var (
	errAddressEmpty    = errors.New("must not be empty")
	errAddressPrefix   = errors.New("is not an Ethereum address: it must start with 0x")
	errAddressLength   = errors.New("has the wrong length: an Ethereum address is 0x and 40 hexadecimal digits")
	errAddressAlphabet = errors.New("has characters that an Ethereum address can't have (0 to 9, a to f)")
	errAddressBurns    = errors.New("has no owner; money sent there is burnt")
	errAddressChecksum = errors.New("has a wrong checksum (EIP-55): a character is mistyped or in the wrong case")
)

// ParseAddress checks an Ethereum address and returns its form with the checksum. It makes no network call, so the API can
// use it too. Its errors are of ReasonAddress and their Detail may be shown to clients.
func ParseAddress(s string) (string, error) {
	a, err := parse(s)
	if err == nil && burns(a) {
		err = errAddressBurns
	}
	return canonical(a, err)
}

// ReadAddress is ParseAddress for an address that is not to be paid: a contract or one that burns coins is as good.
func ReadAddress(s string) (string, error) { return canonical(parse(s)) }

func canonical(a common.Address, err error) (string, error) {
	if err != nil {
		return "", chain.Errorf(chain.ReasonAddress, "%s", err.Error())
	}
	return a.Hex(), nil
}

// dead is an address that is used to burn tokens.
var dead = common.HexToAddress("0x000000000000000000000000000000000000dEaD")

// burns reports whether money sent to an address is lost: it is used for burning, or one of the lowest 256 addresses, which
// are the zero address and the network's own contracts.
func burns(a common.Address) bool {
	const last = common.AddressLength - 1
	return a == dead || a == common.Address{last: a[last]}
}

// parse reads an address. The checks are ordered so that the most helpful message comes first.
func parse(s string) (common.Address, error) {
	if s == "" {
		return common.Address{}, errAddressEmpty
	}
	if len(s) > maxTextLength {
		return common.Address{}, errAddressLength
	}
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok {
		return common.Address{}, errAddressPrefix
	}
	if len(digits) != addressDigits {
		return common.Address{}, errAddressLength
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return common.Address{}, errAddressAlphabet
	}
	a := common.BytesToAddress(b)
	if digits != strings.ToLower(digits) && digits != strings.ToUpper(digits) && s != a.Hex() {
		return common.Address{}, errAddressChecksum
	}
	return a, nil
}

// ParseAddress is the package's ParseAddress.
func (c *Client) ParseAddress(s string) (string, error) { return ParseAddress(s) }

// Address is the address of an uncompressed secp256k1 public key.
func (c *Client) Address(publicKey []byte) (string, error) {
	key, err := crypto.UnmarshalPubkey(publicKey)
	if err != nil {
		return "", chain.Wrap(chain.ReasonAddress, err, "an Ethereum key is 65 bytes of uncompressed secp256k1")
	}
	return crypto.PubkeyToAddress(*key).Hex(), nil
}

// Holders is the address alone: contracts keep balances by address.
func (c *Client) Holders(_ context.Context, address string, _ money.Asset) ([]string, error) {
	return []string{address}, nil
}

// Unused returns an address without a known key that no token knows, for the simulation of a payment to a new recipient. Each
// seed has its own.
func (c *Client) Unused(seed string) string {
	return common.BytesToAddress(crypto.Keccak256([]byte("kivuko unused " + seed))).Hex()
}
