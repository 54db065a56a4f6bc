package main

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"kivuko/store"
	"kivuko/store/storetest"
)

// TestProductionRefusesThePowerfulRole opens the database as its owner, which production must not do.
func TestProductionRefusesThePowerfulRole(t *testing.T) {
	p := process{config: Config{DatabaseURL: storetest.URL(t)}, log: slog.New(slog.DiscardHandler), out: io.Discard}
	for mode, refused := range map[Mode]bool{Local: false, Production: true} {
		p.config.Mode = mode
		db, err := openStore(t.Context(), p, store.Options{MaxConns: 1})
		if refused != (err != nil && strings.Contains(err.Error(), "KIVUKO_DATABASE_URL must log in with a role that is no more than a member of kivuko_app")) {
			t.Errorf("%s: got %v", mode, err)
		}
		if err == nil {
			closing(p, db)
		}
	}
}
