package keys

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// coldKeys makes both halves of a cold key.
func coldKeys(t *testing.T) (*ColdSealer, *ColdVault, string) {
	t.Helper()
	private, public := filepath.Join(t.TempDir(), "cold.json"), filepath.Join(t.TempDir(), "public.json")
	text, err := CreateColdKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(public, text, 0o600); err != nil {
		t.Fatal(err)
	}
	sealer, err := ReadColdSealer(public)
	if err != nil {
		t.Fatal(err)
	}
	vault, err := OpenColdVault(private)
	if err != nil {
		t.Fatal(err)
	}
	return sealer, vault, private
}

func TestOnlyTheColdMachineOpensColdKeys(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	sealer, vault, private := coldKeys(t)
	ref := Ref{WalletID: uuid.New(), Network: exchange.Tron}
	sealed, err := sealer.Create(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	digest := make([]byte, digestLength)
	signs := func(k chain.Key) error {
		if !bytes.Equal(k.PublicKey(), sealed.PublicKey) {
			t.Error("the key is another one")
		}
		if _, err := k.Sign(digest); err != nil {
			t.Error(err)
		}
		if _, err := k.Sign(digest); err == nil {
			t.Error("it signed twice")
		}
		return nil
	}
	if err := vault.Use(ctx, sealed, ref, signs); err != nil {
		t.Fatal(err)
	}
	never := func(chain.Key) error {
		t.Error("the key was opened")
		return nil
	}
	other, changed, network := ref, sealed, ref
	other.WalletID = uuid.New()
	network.Network = exchange.Ethereum
	changed.Ciphertext = bytes.Clone(sealed.Ciphertext)
	changed.Ciphertext[len(changed.Ciphertext)-1] ^= 1
	for name, c := range map[string]struct {
		s Sealed
		r Ref
	}{"another wallet": {sealed, other}, "another network": {sealed, network}, "changed": {changed, ref}} {
		if err := vault.Use(ctx, c.s, c.r, never); !errors.Is(err, ErrOpen) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, foreign, _ := coldKeys(t)
	if err := foreign.Use(ctx, sealed, ref, never); !errors.Is(err, ErrMasterKey) {
		t.Errorf("another cold key: %v", err)
	}
	hot, err := Open(Config{MasterKey: "file://" + filepath.Join(t.TempDir(), "hot.json"), CreateLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := hot.Use(ctx, sealed, ref, never); !errors.Is(err, ErrMasterKey) {
		t.Errorf("the signer opened it: %v", err)
	}
	if _, err := CreateColdKey(private); err == nil {
		t.Error("a cold key was overwritten")
	}
	if _, err := ReadColdSealer(private); err == nil {
		t.Error("the private half was accepted as the public one")
	}
	if err := os.Chmod(private, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenColdVault(private); err == nil {
		t.Error("a key file that others may read was accepted")
	}
}
