package worker

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/proto"
)

func key(id string, b byte) Key { return Key{ID: id, Secret: bytes.Repeat([]byte{b}, KeySize)} }

func codec(t *testing.T, keys ...Key) *Codec {
	t.Helper()
	c, err := NewCodec(keys)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func payload(text string) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(text)}
}

func TestCodecHidesAndReturnsPayloads(t *testing.T) {
	c := codec(t, key("k1", 1))
	plain := payload(`{"phone":"254712345678"}`)
	sealed, err := c.Encode([]*commonpb.Payload{plain, plain})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(sealed[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"254712345678", "json/plain"} {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("%q can be read in the encrypted payload", secret)
		}
	}
	if bytes.Equal(sealed[0].Data, sealed[1].Data) {
		t.Error("equal payloads give equal ciphertexts: the nonce is not fresh")
	}
	opened, err := c.Decode(sealed)
	if err != nil || !proto.Equal(opened[0], plain) || !proto.Equal(opened[1], plain) {
		t.Errorf("got %v, %v", opened, err)
	}
}

func TestCodecRotatesKeys(t *testing.T) {
	before := codec(t, key("k1", 1))
	sealed, err := before.Encode([]*commonpb.Payload{payload("x")})
	if err != nil {
		t.Fatal(err)
	}
	during := codec(t, key("k2", 2), key("k1", 1))
	if opened, err := during.Decode(sealed); err != nil || string(opened[0].Data) != "x" {
		t.Errorf("the old key's payload: %v, %v", opened, err)
	}
	fresh, err := during.Encode([]*commonpb.Payload{payload("y")})
	if err != nil || string(fresh[0].Metadata[metaKeyID]) != "k2" {
		t.Errorf("the first key must encrypt: %v, %v", fresh, err)
	}
	if _, err := codec(t, key("k2", 2)).Decode(sealed); err == nil || !strings.Contains(err.Error(), `"k1"`) {
		t.Errorf("a dropped key: got %v", err)
	}
}

func TestCodecRefusesChangedPayloads(t *testing.T) {
	c := codec(t, key("k1", 1), key("k2", 1)) // the same secret under two names: the name must count
	for name, spoil := range map[string]func(*commonpb.Payload){
		"data":      func(p *commonpb.Payload) { p.Data[len(p.Data)-1] ^= 1 },
		"key id":    func(p *commonpb.Payload) { p.Metadata[metaKeyID] = []byte("k2") },
		"truncated": func(p *commonpb.Payload) { p.Data = p.Data[:5] },
	} {
		sealed, err := c.Encode([]*commonpb.Payload{payload("x")})
		if err != nil {
			t.Fatal(err)
		}
		spoil(sealed[0])
		if _, err := c.Decode(sealed); err == nil {
			t.Errorf("%s: a changed payload was accepted", name)
		}
	}
}

func TestCodecPassesClearPayloadsOn(t *testing.T) {
	p := payload("typed in the Web UI")
	out, err := codec(t, key("k1", 1)).Decode([]*commonpb.Payload{p})
	if err != nil || out[0] != p {
		t.Errorf("got %v, %v", out, err)
	}
}

func TestNewCodecRefuses(t *testing.T) {
	for name, keys := range map[string][]Key{
		"none": nil, "short": {{ID: "a", Secret: make([]byte, 16)}}, "nameless": {{Secret: make([]byte, KeySize)}},
		"twice": {key("a", 1), key("a", 2)},
	} {
		if _, err := NewCodec(keys); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCodecHandler(t *testing.T) {
	const ui = "http://127.0.0.1:8233"
	c := codec(t, key("k1", 1))
	h := CodecHandler(c, ui, func(r *http.Request) error {
		if r.Header.Get("Authorization") != "Bearer good" {
			return errors.New("no")
		}
		return nil
	})
	ask := func(method, origin, token, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "/decode", strings.NewReader(body))
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	const empty = `{"payloads":[]}`
	if w := ask(http.MethodPost, ui, "good", empty); w.Code != http.StatusOK || w.Header().Get("Access-Control-Allow-Origin") != ui {
		t.Errorf("the Web UI: %d %v", w.Code, w.Header())
	}
	if w := ask(http.MethodPost, ui, "bad", empty); w.Code != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d", w.Code)
	}
	if w := ask(http.MethodPost, "http://evil.example", "good", empty); w.Code != http.StatusForbidden {
		t.Errorf("a stranger's page: %d", w.Code)
	}
	if w := ask(http.MethodOptions, ui, "", ""); w.Code != http.StatusNoContent {
		t.Errorf("a preflight: %d", w.Code)
	}
	if w := ask(http.MethodPost, ui, "good", `{"payloads":[{"data":"`+strings.Repeat("A", maxCodecBody)+`"}]}`); w.Code < http.StatusBadRequest {
		t.Errorf("a body above the limit: %d", w.Code)
	}
}
