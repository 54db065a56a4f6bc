package service_test

import (
	"context"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/service"
)

// The address of a service may hold a key, and failures are logged, so they must not contain it.
func TestServicesThatAreDownAreNotNamed(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:1/ask?key=topsecret"
	screener, err := service.NewScreening(address, "")
	if err != nil {
		t.Fatal(err)
	}
	source, err := service.NewRates(address, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(context.Context) error{
		"screening": func(ctx context.Context) error {
			_, err := screener.Screen(ctx, exchange.Counterparty{})
			return err
		},
		"rates": func(ctx context.Context) error {
			_, err := source.Rates(ctx)
			return err
		},
	} {
		if err := ask(t.Context()); exchange.CodeOf(err) != exchange.CodeUnavailable || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
