// Package keys holds the private keys of custodial wallets and signs approved payments with them.
//
// A key is encrypted with its own data key, and that data key by a master key which never leaves its key management service
// (envelope encryption, by Tink). It is decrypted for the duration of one call. Callers can't have arbitrary bytes signed:
// PaymentSigner signs approved payments and nothing else.
package keys

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/tink"

	"kivuko/chain"
)

// Config configures the master keys.
type Config struct {
	// MasterKey encrypts new keys: awskms://<key ARN>, hcvault://<host>/<mount>/keys/<name> (the Transit engine) or, outside
	// production, file:///<path>.
	MasterKey string
	// OldMasterKeys only decrypt, until everything sealed with them is rewrapped.
	OldMasterKeys []string
	// VaultToken authenticates at HashiCorp Vault.
	VaultToken string
	// VaultTLS has Vault's certificate authority, if it is not one of the system's.
	VaultTLS *tls.Config
	// CreateLocal makes the key file if it does not exist. It has no effect on other kinds.
	CreateLocal bool
	// Production refuses key files: anyone who can copy a disk would have every key.
	Production bool
}

// String leaves the token out.
func (c Config) String() string { return "keys: master key " + c.MasterKey }

// Format leaves the token out of every verb.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue leaves the token out.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON refuses, because of the token.
func (c Config) MarshalJSON() ([]byte, error) { return nil, errNotPrintable }

// Errors of Use and Rewrap.
var (
	// ErrMasterKey means that the master key of a sealed key is not configured.
	ErrMasterKey = errors.New("keys: the key is sealed under a master key that is not configured")
	// ErrOpen means that a sealed key does not open: it was changed, or it belongs to another wallet, network, purpose or
	// public key. It gives no details, because they would only help an attacker.
	ErrOpen = errors.New("keys: the sealed key does not open for this wallet")
)

// Vault seals and opens private keys. It is safe for concurrent use.
type Vault struct {
	current string
	masters map[string]tink.AEAD // by name
}

// Open connects to the master keys. It checks that the current one can encrypt and decrypt, so that a wrong permission fails
// at start and not at the first payment.
func Open(c Config) (*Vault, error) {
	current, err := openMaster(c, c.MasterKey, c.CreateLocal)
	if err != nil {
		return nil, err
	}
	v := &Vault{current: current.name, masters: map[string]tink.AEAD{current.name: current.envelope()}}
	for _, uri := range c.OldMasterKeys {
		old, err := openMaster(c, uri, false)
		if err != nil {
			return nil, err
		}
		v.masters[old.name] = old.envelope()
	}
	probe := []byte("kivuko master key probe")
	sealed, err := v.masters[v.current].Encrypt(probe, probe)
	if err != nil {
		return nil, fmt.Errorf("keys: master key %s can't encrypt: %w", v.current, err)
	}
	if opened, err := v.masters[v.current].Decrypt(sealed, probe); err != nil || subtle.ConstantTimeCompare(opened, probe) != 1 {
		return nil, fmt.Errorf("keys: master key %s can't decrypt: %w", v.current, err)
	}
	return v, nil
}

// MasterKey is the name of the master key that seals new keys.
func (v *Vault) MasterKey() string { return v.current }

// master is an opened master key.
type master struct {
	name string
	aead tink.AEAD
}

// envelope encrypts each plaintext with a new AES-256-GCM data key, and that with the master key.
func (m master) envelope() tink.AEAD {
	return aead.NewKMSEnvelopeAEAD2(aead.AES256GCMKeyTemplate(), m.aead)
}

// Create makes a new key and seals it. It opens the key once before it returns, because money sent to a wallet whose key
// can't be opened would be lost.
func (v *Vault) Create(ctx context.Context, ref Ref) (Sealed, error) {
	sealed, err := create(ctx, ref, func(a Algorithm, public, secret []byte) (Sealed, error) {
		return v.seal(ref, a, public, secret)
	})
	if err != nil {
		return Sealed{}, err
	}
	return sealed, v.Use(ctx, sealed, ref, func(chain.Key) error { return nil })
}

// seal encrypts under the current master key.
func (v *Vault) seal(ref Ref, a Algorithm, public, secret []byte) (Sealed, error) {
	ciphertext, err := v.masters[v.current].Encrypt(secret, ref.binding(a, public))
	if err != nil {
		return Sealed{}, fmt.Errorf("keys: master key %s can't encrypt: %w", v.current, err)
	}
	return Sealed{Ciphertext: ciphertext, MasterKey: v.current, PublicKey: public, Algorithm: a}, nil
}

// Use opens a sealed key, passes it to do, and overwrites it when do returns or panics. The key can only sign, and only
// until then.
func (v *Vault) Use(ctx context.Context, s Sealed, ref Ref, do func(chain.Key) error) error {
	key, err := v.open(ctx, s, ref)
	if err != nil {
		return err
	}
	defer key.close()
	return do(key)
}

// open decrypts a key and compares it with the public key that is stored beside the ciphertext.
func (v *Vault) open(ctx context.Context, s Sealed, ref Ref) (*openKey, error) {
	if err := ref.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if want, err := AlgorithmOf(ref.Network); err != nil || want != s.Algorithm {
		return nil, ErrOpen
	}
	envelope, ok := v.masters[s.MasterKey]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrMasterKey, s.MasterKey)
	}
	secret, err := envelope.Decrypt(s.Ciphertext, ref.binding(s.Algorithm, s.PublicKey))
	if err != nil {
		return nil, ErrOpen
	}
	key, err := newOpenKey(s.Algorithm, secret)
	if err != nil {
		wipe(secret)
		return nil, ErrOpen
	}
	if subtle.ConstantTimeCompare(key.public, s.PublicKey) != 1 {
		key.close()
		return nil, ErrOpen
	}
	return key, nil
}

// Rewrap seals a key with the current master key. The caller stores the result. The old form stays valid while its master
// key is configured, so a crash in between loses nothing.
func (v *Vault) Rewrap(ctx context.Context, s Sealed, ref Ref) (Sealed, error) {
	if s.MasterKey == v.current {
		return s, nil
	}
	key, err := v.open(ctx, s, ref)
	if err != nil {
		return Sealed{}, err
	}
	defer key.close()
	sealed, err := v.seal(ref, s.Algorithm, key.public, key.secret)
	if err != nil {
		return Sealed{}, err
	}
	return sealed, v.Use(ctx, sealed, ref, func(chain.Key) error { return nil })
}
