package docker

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// vault serves what the API asks of the key service of files before it starts: to encrypt something and to get it back. It keeps
// nothing secret, because no file is taken here. The certificate is the one that the image has to trust.
func vault(t *testing.T) (url, certificate string) {
	t.Helper()
	const sealed = "vault:v1:"
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Plaintext, Ciphertext string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("X-Vault-Token") != "token" {
			http.Error(w, `{"errors":["permission denied"]}`, http.StatusForbidden)
			return
		}
		out := map[string]string{"ciphertext": sealed + in.Plaintext}
		if strings.HasPrefix(r.URL.Path, "/v1/transit/decrypt/") {
			out = map[string]string{"plaintext": strings.TrimPrefix(in.Ciphertext, sealed)}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": out})
	}))
	t.Cleanup(s.Close)
	return "hcvault://" + strings.TrimPrefix(s.URL, "https://") + "/transit/keys/kivuko-files",
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}
