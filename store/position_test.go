package store_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/store"
	"kivuko/store/storetest"
)

// A position belongs to the transaction that draws it, whatever others that began later have committed
// in the meantime. Otherwise readers would skip rows, and two writers would draw the same one.
func TestPositionsOfTransactionsStayApart(t *testing.T) {
	db := storetest.DB(t, storetest.URL(t))
	for _, log := range []struct{ name, insert, last string }{
		{"events", store.InsertEvent, `SELECT max(cursor) FROM events WHERE object_id = $1`},
		{"audit", store.InsertAudit, `SELECT max(id) FROM audit_log WHERE object_id = $1`},
	} {
		t.Run(log.name, func(t *testing.T) {
			early, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = early.Rollback() }() // does nothing after the commit
			var own int64
			if err := early.QueryRowContext(t.Context(), `SELECT log_position()`).Scan(&own); err != nil {
				t.Fatal(err)
			}
			late, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			insertLog(t, late, log.name, log.insert, uuid.New())
			if err := late.Commit(); err != nil {
				t.Fatal(err)
			}
			id := uuid.New()
			const rows = 3
			for range rows {
				insertLog(t, early, log.name, log.insert, id)
			}
			var last int64
			if err := early.QueryRowContext(t.Context(), log.last, id).Scan(&last); err != nil {
				t.Fatal(err)
			}
			if last != own+rows {
				t.Errorf("the last of %d rows is at %d, %d behind the transaction's own position", rows, last, last-own)
			}
		})
	}
}

func insertLog(t *testing.T, tx *sql.Tx, log, insert string, id uuid.UUID) {
	t.Helper()
	at := time.Now().UTC()
	args := []any{"test", id, "test.done", nil, nil, "{}", at}
	if log == "audit" {
		args = []any{at, "flow", "flow", "", "", "test.done", "test", id, nil, nil}
	}
	if _, err := tx.ExecContext(t.Context(), insert, args...); err != nil {
		t.Fatal(err)
	}
}
