package store_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/store"
	"kivuko/store/storetest"
)

// A position belongs to the transaction that takes it, whatever later ones have committed in the meantime. Otherwise
// readers would skip rows, and two writers would take the same one.
func TestPositionsOfTransactionsStayApart(t *testing.T) {
	db := storetest.DB(t, storetest.URL(t))
	for _, log := range []struct{ name, last string }{
		{"events", `SELECT max(cursor) FROM events WHERE object_id = $1 HAVING max(sequence) = 3 AND count(*) = 3`},
		{"audit", `SELECT max(id) FROM audit_log WHERE object_id = $1 HAVING count(*) = 3`},
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
			writeLog(t, late, uuid.New())
			if err := late.Commit(); err != nil {
				t.Fatal(err)
			}
			id := uuid.New()
			const rows = 3 // by two statements
			writeLog(t, early, id)
			writeLog(t, early, id, id)
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

// writeLog records an event of each object.
func writeLog(t *testing.T, tx *sql.Tx, ids ...uuid.UUID) {
	t.Helper()
	var lines []string
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf(`{"at": %q, "actor": "flow", "role": "flow", "ip": "", "request_id": "", "action": "test.done", "object_type": "test",
			"object_id": %q, "after": {}, "event": true}`, time.Now().UTC().Format(time.RFC3339Nano), id))
	}
	if _, err := tx.ExecContext(t.Context(), store.WriteEventLog, "["+strings.Join(lines, ",")+"]"); err != nil {
		t.Fatal(err)
	}
}
