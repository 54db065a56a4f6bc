package main

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"kivuko/store"
	"kivuko/store/storetest"
)

// TestOlderGuardsAreNotServed starts over a database whose migration died before it wrote the functions.
func TestOlderGuardsAreNotServed(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	p := process{config: Config{DatabaseURL: url, Mode: Local}, log: slog.New(slog.DiscardHandler), out: io.Discard}
	if _, err := storetest.DB(t, url).ExecContext(t.Context(), `DELETE FROM schema_code`); err != nil {
		t.Fatal(err)
	}
	if db, err := openStore(t.Context(), p, store.RoleFlows, store.Options{MaxConns: 1}); err == nil || !strings.Contains(err.Error(), "Run `kivuko migrate`") {
		t.Errorf("opened %v, %v", db, err)
	}
	if err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db, err := openStore(t.Context(), p, store.RoleFlows, store.Options{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	closing(p, db)
}

// TestProductionRefusesThePowerfulRole opens the database as its owner, which production must not do.
func TestProductionRefusesThePowerfulRole(t *testing.T) {
	p := process{config: Config{DatabaseURL: storetest.URL(t)}, log: slog.New(slog.DiscardHandler), out: io.Discard}
	for mode, refused := range map[Mode]bool{Local: false, Production: true} {
		p.config.Mode = mode
		db, err := openStore(t.Context(), p, store.RoleFlows, store.Options{MaxConns: 1})
		if refused != (err != nil && strings.Contains(err.Error(), "KIVUKO_DATABASE_URL must log in as kivuko_flows")) {
			t.Errorf("%s: got %v", mode, err)
		}
		if err == nil {
			closing(p, db)
		}
	}
}
