package service_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/service"
)

// Only a clear answer in the right form lets money go.
func TestScreening(t *testing.T) {
	t.Parallel()
	about := exchange.Counterparty{TransferID: uuid.New(), Network: exchange.Tron, Address: "TStranger", Amount: money.Must(money.USDT, "10")}
	for _, c := range []struct {
		name    string
		status  int
		body    string
		verdict exchange.Verdict // empty for no answer
	}{
		{"clear", 200, `{"verdict":"clear","reference":"r-1"}`, exchange.VerdictClear},
		{"hit", 200, `{"verdict":"hit","reference":"r-1","more":[1]}`, exchange.VerdictHit},
		{"unknown", 200, `{"verdict":"unknown","reference":"r-1"}`, exchange.VerdictUnknown},
		{"no verdict", 200, `{}`, ""},
		{"another verdict", 200, `{"verdict":"CLEAR"}`, ""},
		{"no JSON", 200, `clear`, ""},
		{"nothing", 200, ``, ""},
		{"refused", 403, `{"verdict":"clear"}`, ""},
		{"broken", 500, `{"verdict":"clear"}`, ""},
		{"created", 201, `{"verdict":"clear"}`, ""},
		{"redirected", 302, `{"verdict":"clear"}`, ""},
		{"endless", 200, `{"verdict":"clear","reference":"` + strings.Repeat("x", 70<<10) + `"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var asked map[string]string
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked["address"] != "TStranger" || asked["amount"] != "10.000000" ||
					asked["reference"] != about.TransferID.String() || r.Header.Get("Authorization") != "Bearer secret" || r.Method != http.MethodPost {
					t.Errorf("asked %s %v, %v", r.Method, asked, err)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			s, err := service.NewScreening(server.URL, "secret")
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Screen(t.Context(), about)
			if c.verdict == "" {
				if exchange.CodeOf(err) != exchange.CodeUnavailable || got.Verdict != "" {
					t.Fatalf("%+v, %v", got, err)
				}
				return
			}
			if err != nil || got.Verdict != c.verdict || got.Reference != "r-1" || got.Screener == "" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	for _, bad := range []string{"", "screen.example", "ftp://screen.example", "http://", "https://user:secret@screen.example/"} {
		if _, err := service.NewScreening(bad, ""); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	s, err := service.NewScreening("http://127.0.0.1:1", "secret")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Screen(t.Context(), about); exchange.CodeOf(err) != exchange.CodeUnavailable || strings.Contains(err.Error(), "secret") {
		t.Errorf("no server: %v", err)
	}
}
