package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

func TestKeysOfFilesAreSealedAnew(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	vendor := storetest.User(t, s, exchange.RoleVendor)
	first, second := addFile(t, s, vendor, "a", false), addFile(t, s, vendor, "b", false)
	keys, err := s.FileKeysOfOtherMasters(t.Context(), "second", uuid.Nil, 10)
	if err != nil || len(keys) != 2 || keys[0].FileID != first.ID {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	anew := keys[0]
	anew.Ciphertext, anew.MasterKey = []byte("anew"), "second"
	for range 2 {
		if err := s.SealFileKeyAnew(t.Context(), anew, exchange.System("operator")); err != nil {
			t.Fatal(err)
		}
	}
	_, key, err := s.ViewFile(t.Context(), seen(vendor), first.ID, nil, storetest.PrincipalOf(vendor))
	if err != nil || string(key.Ciphertext) != "anew" {
		t.Errorf("read %q, %v", key.Ciphertext, err)
	}
	keys, err = s.FileKeysOfOtherMasters(t.Context(), "second", uuid.Nil, 10)
	uses, usesErr := s.FileKeysByMaster(t.Context())
	if err != nil || usesErr != nil || len(keys) != 1 || keys[0].FileID != second.ID || !slices.Equal(uses, []exchange.MasterKeyUse{{MasterKey: "first", Keys: 1}, {MasterKey: "second", Keys: 1}}) {
		t.Errorf("left are %v, used are %v (%v, %v)", keys, uses, err, usesErr)
	}
}

// The key of a purged file is gone: a seal that is written at the same time goes with it, and none comes later.
func TestNoSealOutlivesItsFile(t *testing.T) {
	t.Parallel()
	dsn := storetest.URL(t)
	s := storetest.Open(t, dsn, store.Options{})
	vendor := storetest.User(t, s, exchange.RoleVendor)
	f := addFile(t, ago(t, dsn, 15*day), vendor, "old", false)
	if n, err := s.EndFiles(t.Context(), 10); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	sealing, err := storetest.Owner(t, s).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sealing.Rollback() }()
	if _, err := sealing.ExecContext(t.Context(), `INSERT INTO file_keys (file_id, seal, ciphertext, master_key) VALUES ($1, 2, 'x', 'second')`, f.ID); err != nil {
		t.Fatal(err)
	}
	purged := make(chan error, 1)
	go func() { purged <- s.PurgeFile(t.Context(), f.ID) }()
	waitsFor(t, storetest.Owner(t, s), purged)
	if err := errors.Join(sealing.Commit(), <-purged); err != nil {
		t.Fatal(err)
	}
	var keys int
	if err := storetest.Owner(t, s).QueryRowContext(t.Context(), `SELECT count(*) FROM file_keys`).Scan(&keys); err != nil || keys != 0 {
		t.Errorf("%d keys are left, %v", keys, err)
	}
	if err := s.SealFileKeyAnew(t.Context(), exchange.SealedFileKey{FileID: f.ID, Ciphertext: []byte("y"), MasterKey: "second"}, exchange.System("operator")); err != nil {
		t.Errorf("a purged file ends the sealing of the others: %v", err)
	}
	if _, err := storetest.Owner(t, s).ExecContext(t.Context(), `INSERT INTO file_keys (file_id, seal, ciphertext, master_key) VALUES ($1, 1, 'x', 'first')`, f.ID); sqlState(err) != "KV001" {
		t.Errorf("a purged file gets a key: %v", err)
	}
}

// Keys of files and of wallets have other master keys, also where no process knows both.
func TestMasterKeysOfWalletsSealNoFiles(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	vendor := storetest.User(t, s, exchange.RoleVendor)
	houseWallet(t, s, exchange.HouseGas)
	f := uploaded(t, vendor, "slip", false)
	f[0].Key.MasterKey = "test"
	if _, err := s.AddFile(t.Context(), f, storetest.PrincipalOf(vendor)); sqlState(err) != "KV002" {
		t.Errorf("a file is sealed as wallets are: %v", err)
	}
	anew := addFile(t, s, vendor, "another slip", false)
	if err := s.SealFileKeyAnew(t.Context(), exchange.SealedFileKey{FileID: anew.ID, Ciphertext: []byte("x"), MasterKey: "test"}, exchange.System("operator")); sqlState(err) != "KV002" {
		t.Errorf("and anew: %v", err)
	}
}
