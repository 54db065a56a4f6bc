package tron

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/address"
	"github.com/fbsobreira/gotron-sdk/pkg/common"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// A TRON address is 0x41 and the last 20 bytes of the Keccak-256 of a public key, written in base58check
// (developers.tron.network, "Account").
const (
	idLength      = 20
	textLength    = address.AddressLengthBase58
	maxTextLength = 128 // longer texts are refused unread
)

// accountID is an address without its network prefix, as in contracts and event logs.
type accountID [idLength]byte

// full is the address with its prefix, as in transactions.
func (a accountID) full() []byte { return append([]byte{address.TronBytePrefix}, a[:]...) }

// String is the base58check form.
func (a accountID) String() string { return address.Address(a.full()).String() }

// fromFull reads the 21 bytes of a transaction field.
func fromFull(b []byte) (accountID, bool) {
	if len(b) != address.AddressLength || b[0] != address.TronBytePrefix {
		return accountID{}, false
	}
	return accountID(b[1:]), true
}

// fromLog reads an address as in node responses: 20 bytes in logs, 21 elsewhere.
func fromLog(b []byte) (accountID, bool) {
	if len(b) == idLength {
		return accountID(b), true
	}
	return fromFull(b)
}

// fromWord takes the low 20 bytes of a 32-byte word. Some wallets put 0x41 or garbage above them; old contracts ignore it,
// and so must we (vector mainnet-usdt-dirty-address-word).
func fromWord(b []byte) (accountID, bool) {
	if len(b) != wordLength {
		return accountID{}, false
	}
	return accountID(b[wordLength-idLength:]), true
}

// ParseAddress checks a TRON address and returns its canonical form. It makes no network call, so the API can use it too.
// Its errors are of ReasonAddress and their Detail may be shown to clients.
func ParseAddress(s string) (string, error) {
	id, err := parse(s)
	if err == nil && burns(id) {
		err = errAddressBurns
	}
	return canonical(id, err)
}

// ReadAddress is ParseAddress for an address that is not to be paid: a contract or one that burns coins is as good.
func ReadAddress(s string) (string, error) { return canonical(parse(s)) }

func canonical(id accountID, err error) (string, error) {
	if err != nil {
		return "", chain.Errorf(chain.ReasonAddress, "%s", err.Error())
	}
	return id.String(), nil
}

// blackHoles are addresses where money is lost. The first is the account of the genesis block that burnt fees go to; the
// other is used to burn tokens.
var blackHoles = [...]accountID{
	{0x77, 0x94, 0x4d, 0x19, 0xc0, 0x52, 0xb7, 0x3e, 0xe2, 0x28, 0x68, 0x23, 0xaa, 0x83, 0xf8, 0x13, 0x8c, 0xb7, 0x03, 0x2f},
	{18: 0xde, 19: 0xad},
}

// burns reports whether money sent to an address is lost: it is a black hole, or one of the lowest 256 addresses, which are
// the zero address and the network's own contracts.
func burns(a accountID) bool {
	return slices.Contains(blackHoles[:], a) || a == accountID{19: a[19]}
}

var (
	errAddressEmpty    = errors.New("must not be empty")
	errAddressEthereum = errors.New("is an Ethereum address (0x…); a TRON address starts with T")
	errAddressHex      = errors.New("is the hexadecimal form of a TRON address; give the base58 form that starts with T")
	errAddressAlphabet = errors.New("has characters that a TRON address can't have (letters and digits without 0, O, I and l)")
	errAddressLength   = errors.New("has the wrong length: a TRON address has 34 characters")
	errAddressPrefix   = errors.New("is not a TRON address: it must start with T")
	errAddressBurns    = errors.New("has no owner; money sent there is burnt")
	errAddressChecksum = errors.New("has a wrong checksum: a character is mistyped or missing")
)

// parse reads the base58check form. The checks are ordered so that the most helpful message comes first.
func parse(s string) (accountID, error) {
	if s == "" {
		return accountID{}, errAddressEmpty
	}
	if len(s) > maxTextLength {
		return accountID{}, errAddressLength
	}
	if err := foreign(s); err != nil {
		return accountID{}, err
	}
	raw, err := common.Decode(s)
	if err != nil {
		return accountID{}, errAddressAlphabet
	}
	if len(s) != textLength {
		return accountID{}, errAddressLength
	}
	if s[0] != 'T' {
		return accountID{}, errAddressPrefix
	}
	// The library checks length, prefix and checksum together; the first two have been checked already.
	if _, err := common.DecodeCheck(s); err != nil {
		return accountID{}, errAddressChecksum
	}
	return accountID(raw[1 : 1+idLength]), nil
}

// foreign recognises addresses in other forms, for a better message.
func foreign(s string) error {
	if rest, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		if strings.HasPrefix(rest, "41") && len(rest) == 2*address.AddressLength {
			return errAddressHex
		}
		return errAddressEthereum
	}
	_, err := hex.DecodeString(s)
	switch isHex := err == nil; {
	case !isHex:
		return nil
	case len(s) == 2*address.AddressLength && strings.HasPrefix(s, "41"):
		return errAddressHex
	case len(s) == 2*idLength:
		return errAddressEthereum
	}
	return nil
}

// ParseAddress is the package's ParseAddress.
func (c *Client) ParseAddress(s string) (string, error) { return ParseAddress(s) }

// Address is the address of an uncompressed secp256k1 public key.
func (c *Client) Address(publicKey []byte) (string, error) {
	key, err := crypto.UnmarshalPubkey(publicKey)
	if err != nil {
		return "", chain.Wrap(chain.ReasonAddress, err, "a TRON key is 65 bytes of uncompressed secp256k1")
	}
	return address.PubkeyToAddress(*key).String(), nil
}

// Holders is the address alone: contracts keep balances by address.
func (c *Client) Holders(_ context.Context, address string, _ money.Asset) ([]string, error) {
	return []string{address}, nil
}

// Unused returns an address without a known key that no token knows, for the simulation of a payment to a new recipient. Each
// seed has its own.
func (c *Client) Unused(seed string) string {
	digest := crypto.Keccak256([]byte("kivuko unused " + seed))
	return accountID(digest[len(digest)-idLength:]).String()
}
