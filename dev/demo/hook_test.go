package demo

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// The merchant's server counts each webhook once, and none that it can't verify.
func TestServersOfMerchantsVerifyWebhooks(t *testing.T) {
	key, object := []byte("a key of the merchant's endpoint"), uuid.New()
	h := &hook{secret: "whsec_" + base64.StdEncoding.EncodeToString(key), seen: map[string]bool{}, came: map[uuid.UUID][]string{}}
	post := func(id, kind string, key []byte) int {
		body := fmt.Sprintf(`{"type": %q, "data": {"object_id": %q}}`, kind, object)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + ".1." + body))
		r := httptest.NewRequest(http.MethodPost, "/kivuko", strings.NewReader(body))
		for name, value := range map[string]string{"webhook-id": id, "webhook-timestamp": "1", "webhook-signature": "v1,AAAA v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, one := range [][2]string{{"1", "a.proposed"}, {"2", "a.executed"}, {"1", "a.proposed"}, {"2", "a.executed"}} {
		if code := post(one[0], one[1], key); code != http.StatusOK {
			t.Errorf("%v was answered with %d", one, code)
		}
	}
	if came, err := h.about(t.Context(), object, "a.executed"); err != nil || !slices.Equal(came, []string{"a.proposed", "a.executed"}) {
		t.Errorf("%v came, %v", came, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.about(over, object, "a.failed"); err == nil {
		t.Error("what did not come was found")
	}
	if code := post("3", "a.failed", []byte("another key")); code != http.StatusUnauthorized {
		t.Errorf("a webhook of somebody else was answered with %d", code)
	}
	if _, err := h.about(t.Context(), object, "a.executed"); err == nil {
		t.Error("a webhook of somebody else passed")
	}
}
