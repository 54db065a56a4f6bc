package keys

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// A key of other data opens only for what it was sealed for, and never as the key of a wallet, nor the other way round.
func TestDataKeysOpenOnlyForTheirData(t *testing.T) {
	v := localVault(t)
	id, key := uuid.New(), bytes.Repeat([]byte{7}, 32)
	sealed, master, err := v.SealData(t.Context(), DataRef{"file", id}, key)
	if err != nil || bytes.Contains(sealed, key) || master != v.MasterKey() {
		t.Fatalf("sealed by %q, %v", master, err)
	}
	if got, err := v.OpenData(t.Context(), DataRef{"file", id}, sealed, master); err != nil || !bytes.Equal(got, key) {
		t.Errorf("opened %x, %v", got, err)
	}
	for name, r := range map[string]DataRef{"another file": {"file", uuid.New()}, "another purpose": {"letter", id}} {
		if _, err := v.OpenData(t.Context(), r, sealed, master); !errors.Is(err, ErrOpen) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := v.OpenData(t.Context(), DataRef{"file", id}, sealed, "another"); !errors.Is(err, ErrMasterKey) {
		t.Errorf("another master key: %v", err)
	}
	for name, r := range map[string]DataRef{"no purpose": {"", id}, "no id": {"file", uuid.Nil}} {
		if _, _, err := v.SealData(t.Context(), r, key); err == nil {
			t.Errorf("%s: a key is sealed", name)
		}
	}
	wallet := Ref{WalletID: id, Network: exchange.Tron}
	own, err := v.Create(t.Context(), wallet)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.OpenData(t.Context(), DataRef{"file", id}, own.Ciphertext, own.MasterKey); !errors.Is(err, ErrOpen) {
		t.Errorf("the key of a wallet opens as that of a file: %v", err)
	}
	own.Ciphertext = sealed
	if err := v.Use(t.Context(), own, wallet, func(chain.Key) error { return nil }); !errors.Is(err, ErrOpen) {
		t.Errorf("the key of a file opens as that of a wallet: %v", err)
	}
}
