package service_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/service"
)

const goodRate = `{"base":"USDT","quote":"KES","bid":"128.90","ask":"129.10","at":"2026-01-31T12:00:00Z"}`

// Only an answer in the right form has rates, and an invalid line does not affect the others.
func TestRates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		status       int
		body         string
		good, broken int // both zero for no answer
	}{
		{"one", 200, `{"rates":[` + goodRate + `],"more":1}`, 1, 0},
		{"a number for a price", 200, `{"rates":[` + goodRate + `,` + strings.Replace(goodRate, `"128.90"`, `128.90`, 1) + `]}`, 1, 1},
		{"an exponent", 200, `{"rates":[` + strings.Replace(goodRate, `128.90`, `1e2`, 1) + `]}`, 0, 1},
		{"a sign", 200, `{"rates":[` + strings.Replace(goodRate, `128.90`, `-1`, 1) + `]}`, 0, 1},
		{"seven places", 200, `{"rates":[` + strings.Replace(goodRate, `129.10`, `129.1000001`, 1) + `]}`, 0, 1},
		{"one side", 200, `{"rates":[` + strings.Replace(goodRate, `"ask":"129.10",`, ``, 1) + `]}`, 0, 1},
		{"no moment", 200, `{"rates":[` + strings.Replace(goodRate, `,"at":"2026-01-31T12:00:00Z"`, ``, 1) + `]}`, 0, 1},
		{"a broken moment", 200, `{"rates":[` + strings.Replace(goodRate, `2026-01-31`, `yesterday`, 1) + `]}`, 0, 1},
		{"nonsense beside", 200, `{"rates":[7,null,"x",` + goodRate + `]}`, 1, 3},
		{"no rates", 200, `{"rates":[]}`, 0, 0},
		{"too many", 200, `{"rates":[` + strings.Repeat(goodRate+",", 50) + goodRate + `]}`, 0, 0},
		{"no JSON", 200, `rates`, 0, 0},
		{"refused", 403, `{"rates":[` + goodRate + `]}`, 0, 0},
		{"redirected", 302, `{"rates":[` + goodRate + `]}`, 0, 0},
		{"endless", 200, `{"x":"` + strings.Repeat("x", 70<<10) + `","rates":[` + goodRate + `]}`, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("asked by %s", r.Method)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			s, err := service.NewRates(server.URL, "secret")
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Rates(t.Context())
			if c.good+c.broken == 0 {
				if exchange.CodeOf(err) != exchange.CodeUnavailable {
					t.Fatalf("%+v, %v", got, err)
				}
				return
			}
			if err != nil || len(got.Rates) != c.good || got.Broken != c.broken {
				t.Fatalf("%+v, %v", got, err)
			}
			if c.good > 0 && (got.Rates[0].Bid.String() != "128.9" || got.Rates[0].Ask.String() != "129.1" || got.Rates[0].ValidFrom.Hour() != 12) {
				t.Errorf("read %+v", got.Rates[0])
			}
		})
	}
	for _, bad := range []string{"", "rates.example", "ftp://rates.example", "http://", "https://user:secret@rates.example/"} {
		if _, err := service.NewRates(bad, ""); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
