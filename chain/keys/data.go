package keys

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// DataRef is what a key of other data than a wallet is for. It is bound into the encryption like a Ref.
type DataRef struct {
	Purpose string // "file"
	ID      uuid.UUID
}

func (r DataRef) check() error {
	if r.Purpose == "" || len(r.Purpose) > maxPurpose || r.ID == uuid.Nil {
		return errors.New("keys: a data key needs a purpose and an id")
	}
	return nil
}

// binding never equals that of a wallet's key, so that no data key opens as a wallet's key, nor the other way round.
func (r DataRef) binding() []byte {
	var out []byte
	for _, part := range []string{"kivuko data key v1", r.Purpose, r.ID.String()} {
		out = fmt.Appendf(out, "%d:%s;", len(part), part)
	}
	return out
}

// SealData encrypts the key of other data than a wallet, and returns the name of the master key too. It opens the result once,
// because data under a key that can't be opened would be lost.
func (v *Vault) SealData(ctx context.Context, ref DataRef, key []byte) ([]byte, string, error) {
	if err := errors.Join(ref.check(), ctx.Err()); err != nil {
		return nil, "", err
	}
	sealed, err := v.masters[v.current].Encrypt(key, ref.binding())
	if err != nil {
		return nil, "", fmt.Errorf("keys: master key %s can't encrypt: %w", v.current, err)
	}
	opened, err := v.OpenData(ctx, ref, sealed, v.current)
	wipe(opened)
	return sealed, v.current, err
}

// OpenData decrypts what SealData encrypted with the master key of the name. The caller overwrites the key after use.
func (v *Vault) OpenData(ctx context.Context, ref DataRef, sealed []byte, masterKey string) ([]byte, error) {
	if err := errors.Join(ref.check(), ctx.Err()); err != nil {
		return nil, err
	}
	envelope, ok := v.masters[masterKey]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrMasterKey, masterKey)
	}
	key, err := envelope.Decrypt(sealed, ref.binding())
	if err != nil {
		return nil, ErrOpen
	}
	return key, nil
}
