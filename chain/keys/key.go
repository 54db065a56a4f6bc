package keys

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/ethereum/go-ethereum/crypto"

	"kivuko/chain"
)

const (
	privateLength = 32 // a secp256k1 scalar, or an ed25519 seed
	digestLength  = 32
)

// ErrKeyClosed is returned by a key after the call for which it was opened.
var ErrKeyClosed = errors.New("keys: the key is closed; it is valid only inside the call that it was opened for")

// errFault means that a signature does not verify. The likely cause is a hardware fault, and such a signature could reveal
// the key.
var errFault = errors.New("keys: the signature does not verify and was withheld")

// openKey is a private key in memory. Its secret is in a separate slice that wipe overwrites.
type openKey struct {
	mu        sync.Mutex
	algorithm Algorithm
	secret    []byte
	public    []byte
	closed    bool
}

var _ chain.Key = (*openKey)(nil)

// generate makes a new private key from crypto/rand. The caller wipes it.
func generate(a Algorithm) ([]byte, error) {
	switch a {
	case Secp256k1:
		key, err := ecdsa.GenerateKey(crypto.S256(), rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("keys: no randomness: %w", err)
		}
		defer wipeScalar(key)
		return crypto.FromECDSA(key), nil
	case Ed25519:
		seed := make([]byte, privateLength)
		if _, err := io.ReadFull(rand.Reader, seed); err != nil {
			return nil, fmt.Errorf("keys: no randomness: %w", err)
		}
		return seed, nil
	}
	return nil, fmt.Errorf("keys: algorithm: %q is unknown", string(a))
}

// create makes a new key, has it sealed and overwrites it.
func create(ctx context.Context, ref Ref, seal func(a Algorithm, public, secret []byte) (Sealed, error)) (Sealed, error) {
	if err := errors.Join(ref.check(), ctx.Err()); err != nil {
		return Sealed{}, err
	}
	algorithm, err := AlgorithmOf(ref.Network)
	if err != nil {
		return Sealed{}, err
	}
	secret, err := generate(algorithm)
	if err != nil {
		return Sealed{}, err
	}
	key, err := newOpenKey(algorithm, secret)
	if err != nil {
		return Sealed{}, err
	}
	defer key.close()
	return seal(algorithm, key.public, secret)
}

// newOpenKey takes ownership of secret. Its errors reveal nothing about the secret.
func newOpenKey(a Algorithm, secret []byte) (*openKey, error) {
	if len(secret) != privateLength {
		return nil, fmt.Errorf("keys: a private key has %d bytes, it must have %d", len(secret), privateLength)
	}
	k := &openKey{algorithm: a, secret: secret}
	switch a {
	case Secp256k1:
		key, err := crypto.ToECDSA(secret)
		if err != nil {
			return nil, errors.New("keys: the private key is outside the curve's range")
		}
		defer wipeScalar(key)
		k.public = crypto.FromECDSAPub(&key.PublicKey)
	case Ed25519:
		key := ed25519.NewKeyFromSeed(secret)
		defer wipe(key)
		k.public = bytes.Clone(key[privateLength:])
	default:
		return nil, fmt.Errorf("keys: algorithm: %q is unknown", string(a))
	}
	return k, nil
}

// PublicKey is the public half, which stays readable after the key is closed.
func (k *openKey) PublicKey() []byte { return bytes.Clone(k.public) }

// Sign makes a deterministic signature and verifies it before returning it.
func (k *openKey) Sign(payload []byte) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, ErrKeyClosed
	}
	if k.algorithm == Ed25519 {
		key := ed25519.NewKeyFromSeed(k.secret)
		defer wipe(key)
		signature := ed25519.Sign(key, payload)
		if !ed25519.Verify(k.public, payload, signature) {
			return nil, errFault
		}
		return signature, nil
	}
	return k.signDigest(payload)
}

// signDigest signs a hash with a nonce of RFC 6979, so that a weak random source can't leak the key, and signing twice gives
// the same bytes.
func (k *openKey) signDigest(digest []byte) ([]byte, error) {
	if len(digest) != digestLength {
		return nil, fmt.Errorf("keys: a digest has %d bytes, it must have %d", len(digest), digestLength)
	}
	key, err := crypto.ToECDSA(k.secret)
	if err != nil {
		return nil, errors.New("keys: the private key is outside the curve's range")
	}
	defer wipeScalar(key)
	signature, err := crypto.Sign(digest, key)
	if err != nil {
		return nil, errors.New("keys: the digest can't be signed")
	}
	signer, err := crypto.Ecrecover(digest, signature)
	if err != nil || !bytes.Equal(signer, k.public) {
		return nil, errFault
	}
	return signature, nil
}

// close overwrites the secret. It waits for a running signature.
func (k *openKey) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	wipe(k.secret)
	k.closed = true
}

// wipe overwrites secret bytes. The compiler can't remove clear while the slice is reachable from elsewhere. Copies that the
// runtime or a library made can't be reached, which is why core dumps are turned off as well.
func wipe(b []byte) { clear(b) }

// wipeScalar overwrites the number in a private key of the standard library's form, which is unusable afterwards.
func wipeScalar(k *ecdsa.PrivateKey) {
	clear(k.D.Bits()) //nolint:staticcheck // the scalar can't be reached in any other way
}

const redacted = "[private key]"

// String hides the key.
func (k *openKey) String() string { return redacted }

// Format hides the key from every verb.
func (k *openKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue hides the key.
func (k *openKey) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses.
func (k *openKey) MarshalJSON() ([]byte, error) { return nil, errNotPrintable }

// MarshalText refuses.
func (k *openKey) MarshalText() ([]byte, error) { return nil, errNotPrintable }
