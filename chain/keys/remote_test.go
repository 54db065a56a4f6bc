package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kivuko/chain"
	"kivuko/exchange"
)

// transit implements the two calls of HashiCorp Vault's Transit engine that Tink makes, with real encryption.
func transit(t *testing.T, token string) *httptest.Server {
	t.Helper()
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Plaintext, Ciphertext string
			AssociatedData        string `json:"associated_data"`
		}
		if r.Header.Get("X-Vault-Token") != token || json.NewDecoder(r.Body).Decode(&in) != nil {
			http.Error(w, `{"errors":["permission denied"]}`, http.StatusForbidden)
			return
		}
		out := map[string]string{}
		switch r.URL.Path {
		case "/v1/transit/encrypt/wallets":
			plain, _ := base64.StdEncoding.DecodeString(in.Plaintext)
			nonce := make([]byte, gcm.NonceSize())
			_, _ = rand.Read(nonce)
			sealed := gcm.Seal(nonce, nonce, plain, []byte(in.AssociatedData))
			out["ciphertext"] = "vault:v1:" + base64.StdEncoding.EncodeToString(sealed)
		case "/v1/transit/decrypt/wallets":
			sealed, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(in.Ciphertext, "vault:v1:"))
			if len(sealed) < gcm.NonceSize() {
				http.Error(w, `{"errors":["invalid ciphertext"]}`, http.StatusBadRequest)
				return
			}
			plain, err := gcm.Open(nil, sealed[:gcm.NonceSize()], sealed[gcm.NonceSize():], []byte(in.AssociatedData))
			if err != nil {
				http.Error(w, `{"errors":["authentication failed"]}`, http.StatusBadRequest)
				return
			}
			out["plaintext"] = base64.StdEncoding.EncodeToString(plain)
		default:
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": out})
	}))
	t.Cleanup(s.Close)
	return s
}

func TestVaultTransit(t *testing.T) {
	const token = "token-of-the-signer"
	server := transit(t, token)
	authorities := x509.NewCertPool()
	authorities.AddCert(server.Certificate())
	c := Config{
		MasterKey:  "hcvault://" + server.Listener.Addr().String() + "/transit/keys/wallets",
		VaultToken: token, VaultTLS: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}, Production: true,
	}
	v, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	r := ref(exchange.Tron)
	sealed, err := v.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if sealed.MasterKey != c.MasterKey {
		t.Errorf("sealed under %s", sealed.MasterKey)
	}
	if err := v.Use(t.Context(), sealed, r, func(chain.Key) error { return nil }); err != nil {
		t.Error(err)
	}
	c.VaultToken = "wrong"
	if _, err := Open(c); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong token: %v", err)
	}
	c.VaultToken = ""
	if _, err := Open(c); err == nil {
		t.Error("no token was accepted")
	}
}
