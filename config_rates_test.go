package main

import (
	"strings"
	"testing"
	"time"
)

// A source of rates is refused at start when it can't work, or when its connection is not encrypted.
func TestRatesConfig(t *testing.T) {
	t.Parallel()
	good := RatesConfig{URL: "https://rates.example/kes", Source: "bank", Life: time.Hour}
	for want, change := range map[string]func(*RatesConfig){
		"":                    func(*RatesConfig) {},
		"KIVUKO_RATES_SOURCE": func(r *RatesConfig) { r.Source = "admin" },
		"KIVUKO_RATES_LIFE":   func(r *RatesConfig) { r.Life = time.Second },
	} {
		r, n := good, need{}
		change(&r)
		r.check(&n)
		if got := strings.Join(n.problems, " "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", want, got)
		}
	}
	if r, err := (Config{Rates: good}).rates(nil); err != nil || r.Source == nil || r.Name != "bank" || r.Life != time.Hour {
		t.Errorf("made %+v, %v", r, err)
	}
	if r, err := (Config{}).rates(nil); err != nil || r.Source != nil {
		t.Errorf("made %+v, %v", r, err)
	}
	good.URL = "rates.example"
	if _, err := (Config{Rates: good}).rates(nil); err == nil {
		t.Error("an address without a scheme is accepted")
	}
}
