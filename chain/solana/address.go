package solana

import (
	"errors"
	"fmt"
	"slices"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
)

const (
	keyLength = sdk.PublicKeyLength
	// 32 bytes of base58 have 32 to 44 characters, 64 bytes have 64 to 88.
	minKeyText, maxKeyText             = 32, 44
	minSignatureText, maxSignatureText = 64, 88
)

// reserved are addresses without an owner that look like wallets, because their bytes happen to be a point of the curve or
// are not checked against it on chain. For all other addresses the account shows whether it is a wallet.
var reserved = [...]sdk.PublicKey{
	sdk.SystemProgramID, sdk.TokenProgramID, sdk.Token2022ProgramID, sdk.SPLAssociatedTokenAccountProgramID,
	sdk.MemoProgramID, sdk.ComputeBudget, sdk.VoteProgramID, sdk.StakeProgramID, sdk.ConfigProgramID,
	sdk.BPFLoaderProgramID, sdk.BPFLoaderDeprecatedProgramID, sdk.BPFLoaderUpgradeableProgramID,
	sdk.AddressLookupTableProgramID, sdk.FeatureProgramID,
	sdk.MustPublicKeyFromBase58("1nc1nerator11111111111111111111111111111111"), // burns whatever it receives
}

// readKey reads 32 bytes of canonical base58.
func readKey(s string) (sdk.PublicKey, error) {
	if len(s) < minKeyText || len(s) > maxKeyText {
		return sdk.PublicKey{}, fmt.Errorf("must have %d to %d characters of base58, it has %d", minKeyText, maxKeyText, len(s))
	}
	key, err := sdk.PublicKeyFromBase58(s)
	if err != nil || key.String() != s {
		return sdk.PublicKey{}, errors.New("must be 32 bytes in base58")
	}
	return key, nil
}

// readHash reads a hash, which is written like an address.
func readHash(s string) (sdk.Hash, error) {
	key, err := readKey(s)
	return sdk.Hash(key), err
}

// errKeyless refuses an address off the curve.
var errKeyless = errors.New("address has no private key: it is not a wallet's but a token account's or a program's, so give the address of the wallet itself")

// parse reads the address of a wallet. Base58 has no checksum here, so the curve is the only check against typing errors: it
// detects half of them. An address off the curve has no private key: it is a token account or belongs to a program. It is
// refused, because a token account can always be paid by its owner's address.
func parse(s string) (sdk.PublicKey, error) {
	key, err := parseHolder(s)
	if err == nil && !key.IsOnCurve() {
		err = errKeyless
	}
	return key, err
}

// parseHolder reads an address that may be off the curve, as that of an account of several owners may be. Whoever uses it
// has to read the account.
func parseHolder(s string) (sdk.PublicKey, error) {
	key, err := readKey(s)
	if err != nil {
		return key, fmt.Errorf("address %w", err)
	}
	if slices.Contains(reserved[:], key) {
		return key, errors.New("address is one of the network's own and has no owner")
	}
	return key, nil
}

// ParseAddress checks the address of a wallet and returns its canonical form, which is the form given.
func ParseAddress(s string) (string, error) { return canonical(parse(s)) }

// ReadAddress is ParseAddress for an address that is not to be paid: a program's or a token account's is as good.
func ReadAddress(s string) (string, error) {
	key, err := readKey(s)
	if err != nil {
		err = fmt.Errorf("address %w", err)
	}
	return canonical(key, err)
}

func canonical(key sdk.PublicKey, err error) (string, error) {
	if err != nil {
		return "", chain.Errorf(chain.ReasonAddress, "the %s", err)
	}
	return key.String(), nil
}

// ParseAddress checks the address of a wallet: 32 bytes in base58, on the curve, not one of the
// network's own, and not the mint of a token.
func (c *Client) ParseAddress(s string) (string, error) { return canonical(c.wallet(s)) }

// wallet is parse, and also refuses the configured mints.
func (c *Client) wallet(s string) (sdk.PublicKey, error) { return c.noMint(parse(s)) }

// holder is parseHolder, and also refuses the configured mints.
func (c *Client) holder(s string) (sdk.PublicKey, error) { return c.noMint(parseHolder(s)) }

func (c *Client) noMint(key sdk.PublicKey, err error) (sdk.PublicKey, error) {
	if err != nil {
		return key, err
	}
	if asset, mint := c.assets[key]; mint {
		return key, fmt.Errorf("address is the mint of %s itself; what is sent there is lost", asset)
	}
	return key, nil
}

// Address is the base58 form of an ed25519 public key.
func (c *Client) Address(publicKey []byte) (string, error) {
	if len(publicKey) != keyLength {
		return "", chain.Errorf(chain.ReasonAddress, "a public key of Solana has %d bytes, this one has %d", keyLength, len(publicKey))
	}
	return ParseAddress(sdk.PublicKey(publicKey).String())
}

// tokenAccount derives the associated token account of a wallet.
func tokenAccount(wallet, mint sdk.PublicKey) (sdk.PublicKey, error) {
	account, _, err := sdk.FindAssociatedTokenAddressWithProgram(wallet, mint, sdk.TokenProgramID)
	if err != nil {
		return sdk.PublicKey{}, chain.Wrap(chain.ReasonAddress, err, "%s has no token account for the mint %s", wallet, mint)
	}
	return account, nil
}
