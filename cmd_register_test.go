package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kivuko/momo/sandbox"
)

// After the registration, the operator sends its notices to our addresses. Repeating it changes nothing.
func TestRegisteredAddressesGetNotices(t *testing.T) {
	token, requests := strings.Repeat("5", 64), make(chan string, 8)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path
		_, _ = w.Write([]byte(`{"ResultCode":"0","ResultDesc":"Accepted"}`))
	}))
	defer receiver.Close()
	operator, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = operator.Close() }()
	var out bytes.Buffer
	p := process{log: slog.New(slog.DiscardHandler), out: &out}
	m := &p.config.Momo
	m.Provider = "daraja"
	m.BaseURL, m.ConsumerKey, m.ConsumerSecret = operator.URL(), sandbox.DefaultConsumerKey, sandbox.DefaultConsumerSecret
	m.Shortcode, m.Passkey, m.CallbackURL = sandbox.DefaultShortcode, sandbox.DefaultPasskey, receiver.URL+"/cb"
	for _, bad := range [][]string{{}, {"-number", "0712345678"}, {"more"}, {"-number", "12"}} {
		if err := runRegister(t.Context(), p, bad); err == nil {
			t.Errorf("%q is accepted without a standing token", bad)
		}
	}
	m.StandingToken = token
	for _, bad := range [][]string{{"more"}, {"-number", "12"}} {
		if err := runRegister(t.Context(), p, bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if err := runRegister(t.Context(), p, nil); err != nil || !strings.Contains(out.String(), "was not opened") {
		t.Fatalf("%q, %v", out.String(), err)
	}
	if err := runRegister(t.Context(), p, []string{"-number", "0712345678"}); err != nil || !strings.Contains(out.String(), "is open") || strings.Contains(out.String(), token) {
		t.Fatalf("%q, %v", out.String(), err)
	}
	if _, err := operator.Pay("254712345678", "RENT", 10); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/cb/" + token + "/validation", "/cb/" + token + "/confirmation"} {
		if got := <-requests; got != want {
			t.Errorf("registered %s, want %s", got, want)
		}
	}
}
