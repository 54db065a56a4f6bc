package keys

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// openingOf is an approved payment that opens an account of two owners.
func openingOf(t *testing.T, v *Vault) *records {
	t.Helper()
	s := approved(t, v)
	s.account = exchange.MultisigAccount{
		MultisigRequest: exchange.MultisigRequest{ID: uuid.New(), Network: exchange.Tron, Address: "account", Threshold: 2, Owners: []exchange.MultisigOwner{
			{N: 1, Address: "anna", Weight: 1}, {N: 2, Address: "bob", Weight: 1, Held: true},
		}},
		Status: exchange.MultisigOpening,
	}
	s.payment.Purpose, s.payment.ObjectID, s.payment.ToAddress, s.payment.Amount = exchange.ForMultisigOpen, s.account.ID, "account", money.Zero(money.TRX)
	s.payment.IntentHash = s.payment.Intent()
	return s
}

// What opens an account is built from the rows of its owners, and a driver that puts other owners into it gets no signature.
func TestSignOpening(t *testing.T) {
	v := localVault(t)
	s, d := openingOf(t, v), &driver{}
	var built chain.Unsigned
	d.change = func(u *chain.Unsigned) { built = *u }
	if a, err := signer(t, v, s, d).SignPayment(t.Context(), s.payment.ID); err != nil || len(a.Raw) == 0 || d.signatures.Load() != 1 {
		t.Fatalf("%v with %d signatures", err, d.signatures.Load())
	}
	want := &chain.OwnersChange{Owners: []chain.Owner{{Address: "anna", Weight: 1}, {Address: "bob", Weight: 1}}, Threshold: 2}
	if built.Seed != s.account.ID.String() || !built.Owners.Equal(want) {
		t.Errorf("it opens an account with the seed %q and %+v", built.Seed, built.Owners)
	}
	for name, change := range map[string]func(*records, *driver){
		"an account that is adopted":    func(s *records, _ *driver) { s.account.Adopted = true },
		"an account that is active":     func(s *records, _ *driver) { s.account.Status = exchange.MultisigActive },
		"an account that is given up":   func(s *records, _ *driver) { s.account.Status = exchange.MultisigRefused },
		"another account":               func(s *records, _ *driver) { s.account.ID = uuid.New() },
		"an account of another network": func(s *records, _ *driver) { s.account.Network = exchange.Ethereum },
		"an account at another address": func(s *records, _ *driver) { s.account.Address = "elsewhere" },
		"owners that the driver changes": func(_ *records, d *driver) {
			d.change = func(u *chain.Unsigned) { u.Owners = &chain.OwnersChange{Threshold: 1} }
		},
		"owners that the driver drops":   func(_ *records, d *driver) { d.change = func(u *chain.Unsigned) { u.Owners = nil } },
		"a seed that the driver changes": func(_ *records, d *driver) { d.change = func(u *chain.Unsigned) { u.Seed = "other" } },
		"an amount below zero": func(s *records, _ *driver) {
			s.payment.Amount = money.Must(money.TRX, "-1")
			s.payment.IntentHash = s.payment.Intent()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := openingOf(t, v), &driver{}
			change(s, d)
			if _, err := signer(t, v, s, d).SignPayment(t.Context(), s.payment.ID); err == nil || d.signatures.Load() != 0 || s.saved != 0 {
				t.Errorf("%v; %d signatures, %d saved", err, d.signatures.Load(), s.saved)
			}
		})
	}
}

// An owner's key opens for that owner of that account and for nothing else.
func TestCreateOwnerKey(t *testing.T) {
	v := localVault(t)
	m := Maker{Vault: v, Networks: map[exchange.Network]Addresser{exchange.Tron: &driver{}}}
	account := uuid.New()
	address, key, err := m.CreateOwnerKey(t.Context(), account, exchange.Tron, 2)
	if err != nil {
		t.Fatal(err)
	}
	sealed := Sealed{Ciphertext: key.Ciphertext, MasterKey: key.MasterKey, PublicKey: key.PublicKey, Algorithm: Algorithm(key.Algorithm)}
	if holder, err := (&driver{}).Address(sealed.PublicKey); err != nil || holder != address || key.WalletID != account {
		t.Errorf("the key of %s is %s's, for %s: %v", address, holder, key.WalletID, err)
	}
	opens := func(r Ref) error { return v.Use(t.Context(), sealed, r, func(chain.Key) error { return nil }) }
	if err := opens(OwnerRef(account, exchange.Tron, 2)); err != nil {
		t.Errorf("it does not open for its owner: %v", err)
	}
	for name, r := range map[string]Ref{
		"another owner": OwnerRef(account, exchange.Tron, 1), "another account": OwnerRef(uuid.New(), exchange.Tron, 2),
		"a wallet": {WalletID: account, Network: exchange.Tron}, "another network": OwnerRef(account, exchange.Ethereum, 2),
	} {
		if err := opens(r); err == nil {
			t.Errorf("it opens for %s", name)
		}
	}
	if _, _, err := m.CreateOwnerKey(t.Context(), account, exchange.Solana, 1); exchange.CodeOf(err) != exchange.CodeUnsupported {
		t.Errorf("a key of a network that the signer has not: %v", err)
	}
}
