package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kivuko/chain/keys"
	"kivuko/exchange/money"
)

// KeysConfig is the keys that encrypt the keys of wallets and webhooks, and the signer's limits.
type KeysConfig struct {
	// The key that encrypts wallet keys: `hcvault://…` (Vault transit), `awskms://…`, or `file:///…` on a developer's machine.
	Master string `env:"MASTER_KEY" for:"signer rewrap" need:"signer rewrap" production:"a key service, not a file"`
	// Former master keys, which only decrypt what they encrypted.
	OldMasters []string `env:"OLD_MASTER_KEYS" for:"signer rewrap"`
	// The token for a Vault.
	VaultToken string `env:"VAULT_TOKEN" for:"signer rewrap" secret:"true"`
	// The file with the public half of the cold key: the signer encrypts the keys of new cold wallets with it. See
	// [the cold machine](runbooks.md#the-cold-machine).
	ColdPublic string `env:"COLD_PUBLIC_KEY" for:"signer"`
	// The file with its private half, only on the cold machine. A signer refuses to start with it.
	Cold string `env:"COLD_KEY" for:"cold-key cold-sign"`
	// The maximum of a single payment for each asset (`USDT:20000,USDC:20000`), whatever its approvals. It is the signer's own
	// limit, which no row in the database can raise. Production requires one for each token that is served.
	Ceilings map[string]string `env:"SIGNER_CEILINGS" for:"signer" production:"required"`
	// `id:` and 64 hexadecimal digits, several for rotation. The first encrypts the secrets that sign webhooks, all of them
	// decrypt. Keep each one as long as an endpoint has a secret that it encrypted. Without it there are no webhooks.
	Webhooks Keyring `env:"WEBHOOK_KEYS" for:"api webhooks" need:"webhooks" secret:"true"`
}

// HexKey is a secret of 32 bytes that is never printed.
type HexKey []byte

// UnmarshalText reads 64 hexadecimal digits.
func (k *HexKey) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != 32 {
		return errors.New("must be 64 hexadecimal digits")
	}
	*k = b
	return nil
}

// String hides the key.
func (k HexKey) String() string { return "[redacted]" }

// GoString hides the key.
func (k HexKey) GoString() string { return "[redacted]" }

// NamedKey is a key of a ring.
type NamedKey struct {
	ID  string
	Key HexKey
}

// Keyring is an ordered set of named keys. New data uses the first; the others only read old data.
type Keyring []NamedKey

// UnmarshalText reads "id:hex,id:hex".
func (r *Keyring) UnmarshalText(text []byte) error {
	for _, part := range strings.Split(string(text), ",") {
		id, digits, ok := strings.Cut(part, ":")
		if !ok || id == "" {
			return errors.New("must be id:hex, comma-separated")
		}
		k := NamedKey{ID: id}
		if err := k.Key.UnmarshalText([]byte(digits)); err != nil {
			return fmt.Errorf("key %s %w", id, err)
		}
		*r = append(*r, k)
	}
	return nil
}

// vault opens the master keys.
func (c Config) vault() (*keys.Vault, error) {
	return keys.Open(keys.Config{
		MasterKey: c.Keys.Master, OldMasterKeys: c.Keys.OldMasters, VaultToken: c.Keys.VaultToken,
		CreateLocal: c.Mode == Local, Production: c.Mode == Production,
	})
}

// checkKeys checks the rules for a signer.
func (c Config) checkKeys(n *need) {
	n.rule(c.Keys.Cold == "", "KIVUKO_COLD_KEY must not be set here: a signer must not be able to decrypt the keys of cold wallets")
	ceilings, err := c.ceilings()
	if err != nil {
		n.problems = append(n.problems, err.Error())
	}
	if c.Mode == Production {
		for _, asset := range c.signedAssets() {
			_, ok := ceilings[asset]
			n.rule(ok || len(c.Keys.Ceilings) == 0, "KIVUKO_SIGNER_CEILINGS must name "+string(asset)+": in production the signer bounds each payment by itself")
		}
	}
	c.checkMaster(n)
}

func (c Config) checkMaster(n *need) {
	n.rule(c.Mode != Production || !strings.HasPrefix(c.Keys.Master, "file:"), "KIVUKO_MASTER_KEY must name a key service in production, not a file")
}

func (c Config) ceilings() (map[money.Asset]money.Amount, error) {
	out := map[money.Asset]money.Amount{}
	for name, text := range c.Keys.Ceilings {
		asset := money.Asset(name)
		if !asset.Valid() {
			return nil, fmt.Errorf("KIVUKO_SIGNER_CEILINGS: %q is not an asset of Kivuko", name)
		}
		limit, err := money.Parse(asset, text)
		if err != nil || !limit.Positive() {
			return nil, fmt.Errorf("KIVUKO_SIGNER_CEILINGS: the ceiling of %s must be a decimal above zero", name)
		}
		out[asset] = limit
	}
	return out, nil
}

// signedAssets are the tokens of all networks that are on.
func (c Config) signedAssets() []money.Asset {
	var out []money.Asset
	for _, n := range c.networks() {
		for _, asset := range slices.Sorted(maps.Keys(n.tokens)) {
			if n.on && !slices.Contains(out, asset) {
				out = append(out, asset)
			}
		}
	}
	return out
}

// developmentMark is what every development key is derived from; see developmentKey.
const developmentMark = "kivuko development key "

// developmentKeys are the keys of the local stack. Each is the SHA-256 of a public text, so they are not secret.
// Production refuses them by value.
func developmentKeys() map[string]HexKey {
	keys := map[string]HexKey{}
	for _, name := range []string{"token", "payload", "payload momo", "payload chain", "payload signer", "payload webhooks", "pepper", "callback", "webhook", "standing", "audit"} {
		sum := sha256.Sum256([]byte(developmentMark + name))
		keys[name] = sum[:]
	}
	return keys
}

func developmentKey(k HexKey) bool {
	for _, d := range developmentKeys() {
		if string(d) == string(k) {
			return true
		}
	}
	return false
}

func (r Keyring) development() bool {
	for _, k := range r {
		if developmentKey(k.Key) {
			return true
		}
	}
	return false
}
