package main

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"kivuko/chain"
	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// madeBy makes a wallet's key as a signer does and stores both.
func madeBy(t *testing.T, s *store.Store, sealer keys.Sealer, n exchange.Network) exchange.SealedKey {
	t.Helper()
	owner := storetest.User(t, s, exchange.RoleCustomer)
	r := exchange.WalletRequest{
		ID: storetest.NewID(t), OwnerType: exchange.OwnerCustomer, OwnerID: owner.ID, Network: n, Asset: money.USDT, Type: exchange.Hot, CreatedBy: owner.ID,
	}
	sealed, err := sealer.Create(t.Context(), keys.Ref{WalletID: r.ID, Network: n})
	if err != nil {
		t.Fatal(err)
	}
	k := exchange.SealedKey{
		WalletID: r.ID, Network: n, Ciphertext: sealed.Ciphertext, MasterKey: sealed.MasterKey, PublicKey: sealed.PublicKey, Algorithm: string(sealed.Algorithm),
	}
	if _, err := storetest.CreateWallet(t.Context(), s, r, "T"+strings.ReplaceAll(r.ID.String(), "-", "")+"x", k); err != nil {
		t.Fatal(err)
	}
	return k
}

// A master key could be replaced only for new wallets: the old one had to stay usable for ever, so one that leaked could never be
// retired. Now its wallets' keys are sealed anew, those of another network's signer and of the cold machine are not, and nothing that
// the signer's login can write takes a key away.
func TestMasterKeyCanBeRetired(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	dir := t.TempDir()
	first, second := "file://"+filepath.Join(dir, "first"), "file://"+filepath.Join(dir, "second")
	old, err := keys.Open(keys.Config{MasterKey: first, CreateLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	mine := []exchange.SealedKey{madeBy(t, s, old, exchange.Tron), madeBy(t, s, old, exchange.Tron)}
	others := madeBy(t, s, old, exchange.Ethereum)
	cold := mine[0]
	cold.MasterKey = exchange.ColdMasterPrefix + "00000001"

	rewrapped := func() string {
		t.Helper()
		var out bytes.Buffer
		c := Config{DatabaseURL: url, Mode: Local, Keys: KeysConfig{Master: second, OldMasters: []string{first}}}
		err := runRewrap(t.Context(), process{config: c, log: slog.New(slog.DiscardHandler), out: &out}, []string{"-network", "tron"})
		if err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if out := rewrapped(); !strings.HasPrefix(out, "2 keys were sealed anew") || strings.Contains(out, old.MasterKey()) {
		t.Errorf("said %q", out)
	}
	if out := rewrapped(); !strings.HasPrefix(out, "0 keys were sealed anew") {
		t.Errorf("again: %q", out)
	}
	fresh, err := keys.Open(keys.Config{MasterKey: second})
	if err != nil {
		t.Fatal(err)
	}
	read, err := s.KeysOfOtherMasters(t.Context(), exchange.Tron, "none", exchange.SealedKey{}, 10)
	if err != nil || len(read) != len(mine) {
		t.Fatalf("read %d keys, %v", len(read), err)
	}
	for _, k := range read {
		sealed := keys.Sealed{Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: keys.Algorithm(k.Algorithm)}
		err := fresh.Use(t.Context(), sealed, keys.Ref{WalletID: k.WalletID, Network: k.Network}, func(chain.Key) error { return nil })
		if err != nil {
			t.Errorf("the new master key alone does not open the key of %s: %v", k.WalletID, err)
		}
	}
	if left, err := s.KeysOfOtherMasters(t.Context(), exchange.Ethereum, old.MasterKey(), exchange.SealedKey{}, 10); err != nil || len(left) != 0 {
		t.Errorf("the keys of another network were touched: %v, %v", left, err)
	}
	refusesStrangeSeals(t, s, mine[0], others, cold)
}

// The keys of owners of an account of several owners are sealed anew as those of wallets are, each for its own owner.
func TestKeysOfOwnersAreSealedAnew(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s, dir := storetest.Open(t, url, store.Options{}), t.TempDir()
	first, second := "file://"+filepath.Join(dir, "first"), "file://"+filepath.Join(dir, "second")
	old, err := keys.Open(keys.Config{MasterKey: first, CreateLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	wallet, owners := madeBy(t, s, old, exchange.Solana), ownedBy(t, s, old, exchange.Solana)
	var out bytes.Buffer
	c := Config{DatabaseURL: url, Mode: Local, Keys: KeysConfig{Master: second, OldMasters: []string{first}}}
	if err := runRewrap(t.Context(), process{config: c, log: slog.New(slog.DiscardHandler), out: &out}, []string{"-network", "solana"}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "3 keys were sealed anew") || strings.Contains(out.String(), old.MasterKey()) {
		t.Errorf("said %q", out.String())
	}
	fresh, err := keys.Open(keys.Config{MasterKey: second})
	if err != nil {
		t.Fatal(err)
	}
	for i, owner := range owners {
		k, err := s.OwnerKey(t.Context(), owner.WalletID, i+1)
		if err != nil || k.MasterKey != fresh.MasterKey() || !bytes.Equal(k.PublicKey, owner.PublicKey) {
			t.Errorf("the key of owner %d is of %s, %v", i+1, k.MasterKey, err)
		}
		sealed := keys.Sealed{Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: keys.Algorithm(k.Algorithm)}
		for n := range 3 {
			err := fresh.Use(t.Context(), sealed, keys.Ref{WalletID: k.WalletID, Network: k.Network, Purpose: exchange.OwnerKeyPurpose(n)}, func(chain.Key) error { return nil })
			if (err == nil) != (n == i+1) {
				t.Errorf("the key of owner %d opens for owner %d: %v", i+1, n, err)
			}
		}
	}
	if _, err := s.OwnerKey(t.Context(), wallet.WalletID, 1); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("a wallet has an owner's key: %v", err)
	}
}

// ownedBy makes the keys of the two officers who own an account as a signer does, and stores both.
func ownedBy(t *testing.T, s *store.Store, sealer keys.Sealer, n exchange.Network) []exchange.SealedKey {
	t.Helper()
	one, two := storetest.User(t, s, exchange.RoleTreasury), storetest.User(t, s, exchange.RoleAdmin)
	r := exchange.MultisigRequest{
		ID: storetest.NewID(t), Network: n, Asset: money.USDT, Name: "Reserve", Custody: exchange.MultisigProvider, Threshold: 2,
		Owners: []exchange.MultisigOwner{{UserID: one.ID}, {UserID: two.ID}}, Policy: exchange.MultisigPolicy{Approvals: 1},
	}
	waits, err := s.ProposeMultisigWallet(t.Context(), r, storetest.PrincipalOf(one))
	if err == nil {
		_, err = s.ConfirmChange(t.Context(), waits.ID, "", storetest.PrincipalOf(two))
	}
	if err != nil {
		t.Fatal(err)
	}
	made := make([]exchange.SealedKey, len(r.Owners))
	for i := range made {
		sealed, err := sealer.Create(t.Context(), keys.Ref{WalletID: r.ID, Network: n, Purpose: exchange.OwnerKeyPurpose(i + 1)})
		if err != nil {
			t.Fatal(err)
		}
		made[i] = exchange.SealedKey{WalletID: r.ID, Ciphertext: sealed.Ciphertext, MasterKey: sealed.MasterKey, PublicKey: sealed.PublicKey, Algorithm: string(sealed.Algorithm)}
		if _, err := s.StoreOwnerKey(t.Context(), r.ID, i+1, "Owner-"+storetest.NewID(t).String(), made[i]); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

func refusesStrangeSeals(t *testing.T, s *store.Store, mine, others, cold exchange.SealedKey) {
	t.Helper()
	signer := storetest.As(t, s, store.RoleSigner)
	const add = `INSERT INTO wallet_keys (wallet_id, seal, ciphertext, master_key, public_key, algorithm) VALUES ($1, $2, $3, $4, $5, $6)`
	for name, c := range map[string]struct {
		seal int
		key  exchange.SealedKey
	}{
		"a key of another wallet": {3, exchange.SealedKey{WalletID: mine.WalletID, Ciphertext: others.Ciphertext, MasterKey: "other", PublicKey: others.PublicKey, Algorithm: others.Algorithm}},
		"a gap":                   {5, exchange.SealedKey{WalletID: mine.WalletID, Ciphertext: mine.Ciphertext, MasterKey: "other", PublicKey: mine.PublicKey, Algorithm: mine.Algorithm}},
		"the cold machine's":      {3, cold},
	} {
		_, err := signer.ExecContext(context.WithoutCancel(t.Context()), add, c.key.WalletID, c.seal, c.key.Ciphertext, c.key.MasterKey, c.key.PublicKey, c.key.Algorithm)
		if err == nil || !strings.Contains(err.Error(), "does not follow the one before") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, q := range []string{`UPDATE wallet_keys SET ciphertext = 'x'`, `DELETE FROM wallet_keys`} {
		if _, err := signer.ExecContext(t.Context(), q); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v", q, err)
		}
	}
}
