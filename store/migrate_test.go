package store_test

import (
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// A build whose schema is older than the database's says so, and a build of the same age changes nothing.
func TestMigrateRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	if err := store.Migrate(t.Context(), url); err != nil {
		t.Errorf("the same schema again: %v", err)
	}
	tamper(t, s, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
	err := store.Migrate(t.Context(), url)
	if exchange.CodeOf(err) != exchange.CodeStateConflict || !strings.Contains(exchange.MessageOf(err), "99999") {
		t.Errorf("a newer schema: %v", err)
	}
}
