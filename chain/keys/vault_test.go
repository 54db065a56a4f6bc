package keys

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

func localVault(t testing.TB) *Vault {
	t.Helper()
	v, err := Open(Config{MasterKey: localKey(t), CreateLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func localKey(t testing.TB) string { return "file://" + filepath.Join(t.TempDir(), "master.json") }

func ref(n exchange.Network) Ref { return Ref{WalletID: uuid.New(), Network: n} }

func TestCreateAndUse(t *testing.T) {
	v := localVault(t)
	for _, network := range exchange.Networks() {
		t.Run(string(network), func(t *testing.T) {
			r := ref(network)
			sealed, err := v.Create(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			payload := crypto.Keccak256([]byte("a payment"))
			var first, second []byte
			err = v.Use(t.Context(), sealed, r, func(k chain.Key) error {
				if !bytes.Equal(k.PublicKey(), sealed.PublicKey) {
					t.Error("the key has another public key than the sealed one")
				}
				var err error
				if first, err = k.Sign(payload); err != nil {
					return err
				}
				second, err = k.Sign(payload)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, second) {
				t.Error("the same payload has two signatures")
			}
			if !verifies(network, sealed.PublicKey, payload, first) {
				t.Error("the signature does not verify")
			}
		})
	}
}

func verifies(n exchange.Network, public, payload, signature []byte) bool {
	if n == exchange.Solana {
		return ed25519.Verify(public, payload, signature)
	}
	signer, err := crypto.Ecrecover(payload, signature)
	return err == nil && bytes.Equal(signer, public) && len(public) == 65
}

// The signature is wallet-core's (SignerTests.cpp, SignTransfer): RFC 6979 leaves only one.
func TestSignatureIsDeterministic(t *testing.T) {
	secret, _ := hex.DecodeString("2d8f68944bdbfbc0769542fba8fc2d2a3de67393334471624364c7006da2aa54")
	digest, _ := hex.DecodeString("dc6f6d9325ee44ab3c00528472be16e1572ab076aa161ccd12515029869d0451")
	const want = "ede769f6df28aefe6a846be169958c155e23e7e5c9621d2e8dce1719b4d952b63e8a8bf9f00e41204ac1bf69b1a663dacdf764367e48e4a5afcd6b055a747fb200"
	k, err := newOpenKey(Secp256k1, secret)
	if err != nil {
		t.Fatal(err)
	}
	got, err := k.Sign(digest)
	if err != nil {
		t.Fatal(err)
	}
	if hex.EncodeToString(got) != want {
		t.Errorf("signature %x, want %s", got, want)
	}
}

func TestEveryCiphertextHasItsOwnDataKey(t *testing.T) {
	v := localVault(t)
	r := ref(exchange.Tron)
	a, err := v.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := v.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	// An envelope begins with the encrypted data key.
	if bytes.Equal(a.Ciphertext[:40], b.Ciphertext[:40]) {
		t.Error("two keys share a data key")
	}
	if bytes.Equal(a.PublicKey, b.PublicKey) {
		t.Error("two keys are the same")
	}
}

func TestUseRefusesWhatIsNotTheWalletsKey(t *testing.T) {
	v := localVault(t)
	r := ref(exchange.Tron)
	sealed, err := v.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	other, err := v.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	tampered := bytes.Clone(sealed.Ciphertext)
	tampered[len(tampered)-1] ^= 1
	with := func(change func(*Sealed, *Ref)) (Sealed, Ref) {
		s, q := sealed, r
		change(&s, &q)
		return s, q
	}
	for name, change := range map[string]func(*Sealed, *Ref){
		"another wallet":              func(_ *Sealed, q *Ref) { q.WalletID = uuid.New() },
		"another network of its kind": func(_ *Sealed, q *Ref) { q.Network = exchange.Ethereum },
		"another kind of network":     func(_ *Sealed, q *Ref) { q.Network = exchange.Solana },
		"another purpose":             func(_ *Sealed, q *Ref) { q.Purpose = "approver" },
		"another public key":          func(s *Sealed, _ *Ref) { s.PublicKey = other.PublicKey },
		"a changed ciphertext":        func(s *Sealed, _ *Ref) { s.Ciphertext = tampered },
		"a short ciphertext":          func(s *Sealed, _ *Ref) { s.Ciphertext = s.Ciphertext[:3] },
		"no ciphertext":               func(s *Sealed, _ *Ref) { s.Ciphertext = nil },
		"another algorithm":           func(s *Sealed, _ *Ref) { s.Algorithm = Ed25519 },
	} {
		t.Run(name, func(t *testing.T) {
			s, q := with(change)
			called := false
			err := v.Use(t.Context(), s, q, func(chain.Key) error { called = true; return nil })
			if !errors.Is(err, ErrOpen) || called {
				t.Errorf("error %v, key given: %v", err, called)
			}
		})
	}
	s, q := with(func(s *Sealed, _ *Ref) { s.MasterKey = "local:00000000" })
	if err := v.Use(t.Context(), s, q, func(chain.Key) error { return nil }); !errors.Is(err, ErrMasterKey) {
		t.Errorf("an unknown master key: %v", err)
	}
	if _, err := v.Create(t.Context(), Ref{Network: exchange.Tron}); err == nil {
		t.Error("a key without a wallet was made")
	}
	if _, err := v.Create(t.Context(), Ref{WalletID: uuid.New(), Network: "bitcoin"}); err == nil {
		t.Error("a key of an unknown network was made")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.Use(cancelled, sealed, r, func(chain.Key) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
}

func TestKeyIsWipedAndClosedAfterUse(t *testing.T) {
	v := localVault(t)
	digest := make([]byte, 32)
	digest[0] = 1
	for _, network := range []exchange.Network{exchange.Tron, exchange.Solana} {
		r := ref(network)
		sealed, err := v.Create(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var kept *openKey
		check := func(name string) {
			t.Helper()
			if !bytes.Equal(kept.secret, make([]byte, privateLength)) {
				t.Errorf("%s: the secret is still in memory", name)
			}
			if _, err := kept.Sign(digest); !errors.Is(err, ErrKeyClosed) {
				t.Errorf("%s: the key still signs: %v", name, err)
			}
		}
		failure := errors.New("no")
		if err := v.Use(t.Context(), sealed, r, func(k chain.Key) error { kept = opened(t, k); return failure }); !errors.Is(err, failure) {
			t.Errorf("the caller's error is lost: %v", err)
		}
		check("after an error")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = v.Use(t.Context(), sealed, r, func(k chain.Key) error { kept = opened(t, k); panic("mid-signature") })
		}()
		check("after a panic")
	}
}

func opened(t *testing.T, k chain.Key) *openKey {
	t.Helper()
	o, ok := k.(*openKey)
	if !ok {
		t.Fatalf("the key is a %T", k)
	}
	return o
}

func TestScalarIsWiped(t *testing.T) {
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	wipeScalar(key)
	if left := crypto.FromECDSA(key); !bytes.Equal(left, make([]byte, privateLength)) {
		t.Fatalf("%x is left of the scalar", left)
	}
}

func TestConcurrentUse(t *testing.T) {
	v := localVault(t)
	r := ref(exchange.Tron)
	sealed, err := v.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			payload := crypto.Keccak256([]byte{byte(i)})
			err := v.Use(context.Background(), sealed, r, func(k chain.Key) error {
				signature, err := k.Sign(payload)
				if err == nil && !verifies(exchange.Tron, sealed.PublicKey, payload, signature) {
					err = errors.New("a signature does not verify")
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestNothingPrintsAKey(t *testing.T) {
	secret := bytes.Repeat([]byte{0xAB}, 31)
	secret = append(secret, 0xCD)
	k, err := newOpenKey(Secp256k1, bytes.Clone(secret))
	if err != nil {
		t.Fatal(err)
	}
	sealed := Sealed{Ciphertext: secret, MasterKey: "local:1", PublicKey: k.public, Algorithm: Secp256k1}
	token := "hvs." + strings.Repeat("AB", 20)
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	var shown []string
	for _, value := range []any{
		k, &onceKey{Key: k},
		struct{ Key chain.Key }{k},
		[]chain.Key{k},
		map[string]any{"k": k},
		sealed, &sealed,
		struct{ S Sealed }{sealed},
		Config{MasterKey: "hcvault://x", VaultToken: token},
		&Config{VaultToken: token},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			shown = append(shown, fmt.Sprintf(verb, value))
		}
		encoded, _ := json.Marshal(value)
		shown = append(shown, string(encoded))
		logger.Info("value", "it", value)
	}
	_, tooShort := newOpenKey(Secp256k1, secret[:31])
	_, zero := newOpenKey(Secp256k1, make([]byte, 32))
	shown = append(shown, log.String(), fmt.Sprint(tooShort, zero))
	for _, s := range shown {
		for _, bad := range []string{hex.EncodeToString(secret[:6]), "171 171 171", `\xab\xab\xab`, token, "q6urq6ur", hex.EncodeToString([]byte(token[:10]))} {
			if strings.Contains(strings.ToLower(s), strings.ToLower(bad)) {
				t.Errorf("%q shows %q", s, bad)
			}
		}
	}
}

func TestRewrap(t *testing.T) {
	first, second := localKey(t), localKey(t)
	old, err := Open(Config{MasterKey: first, CreateLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	r := ref(exchange.Ethereum)
	sealed, err := old.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{MasterKey: second, CreateLocal: true}); err != nil {
		t.Fatal(err)
	}
	both, err := Open(Config{MasterKey: second, OldMasterKeys: []string{first}})
	if err != nil {
		t.Fatal(err)
	}
	moved, err := both.Rewrap(t.Context(), sealed, r)
	if err != nil {
		t.Fatal(err)
	}
	if moved.MasterKey == sealed.MasterKey || moved.MasterKey != both.MasterKey() || !bytes.Equal(moved.PublicKey, sealed.PublicKey) {
		t.Errorf("rewrapped to %v from %v", moved, sealed)
	}
	again, err := both.Rewrap(t.Context(), moved, r)
	if err != nil || !bytes.Equal(again.Ciphertext, moved.Ciphertext) {
		t.Errorf("rewrapping what is current changed it: %v", err)
	}
	onlyNew, err := Open(Config{MasterKey: second})
	if err != nil {
		t.Fatal(err)
	}
	if err := onlyNew.Use(t.Context(), moved, r, func(chain.Key) error { return nil }); err != nil {
		t.Errorf("the new master key alone does not open it: %v", err)
	}
	if err := onlyNew.Use(t.Context(), sealed, r, func(chain.Key) error { return nil }); !errors.Is(err, ErrMasterKey) {
		t.Errorf("the old form without the old master key: %v", err)
	}
	if _, err := both.Rewrap(t.Context(), sealed, ref(exchange.Ethereum)); !errors.Is(err, ErrOpen) {
		t.Errorf("rewrapping for another wallet: %v", err)
	}
}

func TestOpenRefusesUnsafeMasterKeys(t *testing.T) {
	good := localKey(t)
	path := strings.TrimPrefix(good, "file://")
	if _, err := Open(Config{MasterKey: good}); err == nil {
		t.Error("a missing file was accepted, or created without CreateLocal")
	}
	if _, err := Open(Config{MasterKey: good, CreateLocal: true}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key file has mode %v, %v", info.Mode(), err)
	}
	before, _ := os.ReadFile(path)
	if _, err := Open(Config{MasterKey: good, CreateLocal: true}); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("an existing key file was replaced")
	}
	if _, err := Open(Config{MasterKey: good, Production: true}); err == nil || !strings.Contains(err.Error(), "production") {
		t.Errorf("production with a key file: %v", err)
	}
	if _, err := Open(Config{MasterKey: "awskms://arn:aws:kms:eu-west-1:1:key/x", OldMasterKeys: []string{good}, Production: true}); err == nil {
		t.Error("production with an old key file was accepted")
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o644, 0o660, 0o700} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Config{MasterKey: good}); err == nil || !strings.Contains(err.Error(), "permissions") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte(`{"secret":"abcdef"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{"", "master.json", "file://relative/x", "gcp-kms://x", "file://" + broken, "file://" + filepath.Dir(broken), "hcvault://127.0.0.1:1/transit/keys/k"} {
		if _, err := Open(Config{MasterKey: uri}); err == nil || strings.Contains(err.Error(), "abcdef") {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

func TestManyProcessesMakeOneKeyFile(t *testing.T) {
	uri := localKey(t)
	names := make([]string, 8)
	var all sync.WaitGroup
	for i := range names {
		all.Go(func() {
			v, err := Open(Config{MasterKey: uri, CreateLocal: true})
			if err != nil {
				t.Error(err)
				return
			}
			names[i] = v.MasterKey()
		})
	}
	all.Wait()
	for _, n := range names {
		if n != names[0] {
			t.Fatalf("several master keys: %v", names)
		}
	}
	left, _ := os.ReadDir(filepath.Dir(strings.TrimPrefix(uri, "file://")))
	if len(left) != 1 {
		t.Errorf("files are left behind: %v", left)
	}
}

func FuzzBinding(f *testing.F) {
	f.Add("a", "b", []byte{1}, []byte{2})
	id := uuid.New()
	f.Fuzz(func(t *testing.T, p1, p2 string, k1, k2 []byte) {
		a := Ref{WalletID: id, Network: exchange.Tron, Purpose: p1}.binding(Secp256k1, k1)
		b := Ref{WalletID: id, Network: exchange.Tron, Purpose: p2}.binding(Secp256k1, k2)
		same := p1 == p2 && bytes.Equal(k1, k2)
		if bytes.Equal(a, b) != same {
			t.Errorf("%q %x and %q %x: equal bindings %v", p1, k1, p2, k2, !same)
		}
	})
}
