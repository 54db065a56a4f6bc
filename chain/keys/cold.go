package keys

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tink-crypto/tink-go/v2/hybrid"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"kivuko/chain"
	"kivuko/exchange"
)

// Keys of cold wallets are sealed with a public key (HPKE, RFC 9180) whose private half is on a machine without a network.
// The signer creates them but can't open them again.

// ColdSealer creates keys that only the cold machine can open.
type ColdSealer struct {
	name    string
	encrypt tink.HybridEncrypt
}

// ReadColdSealer reads the public key file that CreateColdKey produced.
func ReadColdSealer(path string) (*ColdSealer, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("keys: cold public key: %w", err)
	}
	handle, err := keyset.ReadWithNoSecrets(keyset.NewJSONReader(bytes.NewReader(content)))
	if err != nil {
		return nil, errors.New("keys: the cold public key file holds no public Tink keyset")
	}
	encrypt, err := hybrid.NewHybridEncrypt(handle)
	if err != nil {
		return nil, errors.New("keys: the cold public key file holds no HPKE key")
	}
	name, err := coldName(handle)
	return &ColdSealer{name: name, encrypt: encrypt}, err
}

func coldName(handle *keyset.Handle) (string, error) {
	primary, err := handle.Primary()
	if err != nil {
		return "", errors.New("keys: the cold key file holds no primary key")
	}
	return fmt.Sprintf("%s%08x", exchange.ColdMasterPrefix, primary.KeyID()), nil
}

// Create makes a new key and seals it.
func (c *ColdSealer) Create(ctx context.Context, ref Ref) (Sealed, error) {
	return create(ctx, ref, func(a Algorithm, public, secret []byte) (Sealed, error) {
		ciphertext, err := c.encrypt.Encrypt(secret, ref.binding(a, public))
		if err != nil {
			return Sealed{}, fmt.Errorf("keys: cold key %s can't encrypt: %w", c.name, err)
		}
		return Sealed{Ciphertext: ciphertext, MasterKey: c.name, PublicKey: public, Algorithm: a}, nil
	})
}

// ColdVault opens keys of cold wallets. It exists only on the cold machine.
type ColdVault struct {
	name    string
	decrypt tink.HybridDecrypt
}

// OpenColdVault reads the private half. The file must be readable by its owner alone.
func OpenColdVault(path string) (*ColdVault, error) {
	content, err := readKeyFile(path)
	if err != nil {
		return nil, err
	}
	defer wipe(content)
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(content)))
	if err != nil {
		return nil, errors.New("keys: the cold key file holds no Tink keyset")
	}
	decrypt, err := hybrid.NewHybridDecrypt(handle)
	if err != nil {
		return nil, errors.New("keys: the cold key file holds no private HPKE key")
	}
	name, err := coldName(handle)
	return &ColdVault{name: name, decrypt: decrypt}, err
}

// Use opens a sealed key, passes it to do for one signature, and overwrites it when do returns.
func (v *ColdVault) Use(ctx context.Context, s Sealed, ref Ref, do func(chain.Key) error) error {
	if err := errors.Join(ref.check(), ctx.Err()); err != nil {
		return err
	}
	if want, err := AlgorithmOf(ref.Network); err != nil || want != s.Algorithm {
		return ErrOpen
	}
	if s.MasterKey != v.name {
		return fmt.Errorf("%w: %s", ErrMasterKey, s.MasterKey)
	}
	secret, err := v.decrypt.Decrypt(s.Ciphertext, ref.binding(s.Algorithm, s.PublicKey))
	if err != nil {
		return ErrOpen
	}
	key, err := newOpenKey(s.Algorithm, secret)
	if err != nil {
		wipe(secret)
		return ErrOpen
	}
	defer key.close()
	if subtle.ConstantTimeCompare(key.public, s.PublicKey) != 1 {
		return ErrOpen
	}
	return do(&onceKey{Key: key})
}

// CreateColdKey makes the cold key. It writes the private half to a new file that only its owner may read, and returns the
// public half. It never changes an existing file.
func CreateColdKey(path string) ([]byte, error) {
	handle, err := keyset.NewHandle(hybrid.DHKEM_X25519_HKDF_SHA256_HKDF_SHA256_AES_256_GCM_Key_Template())
	if err != nil {
		return nil, fmt.Errorf("keys: no new cold key: %w", err)
	}
	public, err := handle.Public()
	if err != nil {
		return nil, fmt.Errorf("keys: no new cold key: %w", err)
	}
	var out bytes.Buffer
	if err := public.WriteWithNoSecrets(keyset.NewJSONWriter(&out)); err != nil {
		return nil, fmt.Errorf("keys: no new cold key: %w", err)
	}
	f, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, keyFileMode)
	if err != nil {
		return nil, fmt.Errorf("keys: cold key file: %w", err)
	}
	err = errors.Join(insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(f)), f.Sync(), f.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keys: cold key file: %w", err), os.Remove(path))
	}
	return out.Bytes(), nil
}
