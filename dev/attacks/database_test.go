package attacks

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lib/pq"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/dev/town"
	"kivuko/store"
	"kivuko/workflows"
)

// C1: every process wrote every authorising row, so that any of them approved a payment, made an officer, or logged one in. Now
// each has a role of its own. That the signer checks who approved what is not part of this.
func TestC1_EveryProcessAuthorises(t *testing.T) {
	w := openBeside(t)
	authority := []string{"approvals", "intents", "control_changes", "users", "passkeys", "sessions", "session_families", "approval_tokens", "operator_commands", "releases"}
	may := map[store.Role][]string{store.RoleFlows: {"approvals", "releases"}} // it checks the tickets and judges
	for _, role := range store.Roles() {
		if role == store.RoleAPI {
			continue
		}
		db, err := sql.Open("postgres", w.Stack.Postgres.RoleDSN("kivuko", string(role)))
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range authority {
			_, err := db.ExecContext(t.Context(), `INSERT INTO `+table+` DEFAULT VALUES`)
			said, _ := errors.AsType[*pq.Error](err)
			if denied := said != nil && said.Code == "42501"; denied == slices.Contains(may[role], table) {
				t.Errorf("%s writes %s: %v", role, table, err)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// D4: a database that was put back from before a payout made it again, because only the chains asked which database it is. Now
// nothing is asked of the operator until two officers, who see its report, have released the database; what had been paid is
// settled by its receipt first.
func TestD4_ADatabaseIsPutBack(t *testing.T) {
	w := openLast(t)
	seller, phone := w.Amina(t), town.NewPhone()
	o := w.sells(t, seller, phone)
	payouts := w.Stack.Supervisor.Child(stack.ProcessWorker("momo"))
	if err := payouts.Kill(); err != nil { // the backup is of a moment before the payout
		t.Fatal(err)
	}
	w.pays(t, o, sold)
	w.until(t, seller, o.ID, "before its payout", func(o town.Order) bool { return o.Status == "processing" })
	w.copies(t, "kivuko", "kivuko_backup")
	if err := payouts.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := w.completes(t, seller, o.ID)
	w.paidTo(t, phone, paid)
	w.ended(t, workflows.OffRampID(o.ID))

	w.copies(t, "kivuko_backup", "kivuko")
	w.resumed(t)
	w.parked(t, o.ID, "momo-suspended")
	w.paidTo(t, phone, paid)

	// Two officers compare, settle what was paid, and release.
	settle := map[string]any{"note": done.Receipt.String}
	if err := town.Insist(t.Context(), w.Officer(t), orders+o.ID.String()+"/resolve", town.Key(), settle, nil); err != nil {
		t.Fatal(err)
	}
	w.completes(t, w.login(t, demo.CustomerEmail), o.ID)
	var waits town.Waits
	town.Eventually(t, "a report to compare with", func() error {
		return w.Admin(t).Post(t.Context(), auth+"/momo/release", town.Key(), map[string]any{"note": "each payout is settled"}, &waits)
	})
	w.Agree(t, waits)
	next := town.NewPhone()
	another := w.sells(t, seller, next)
	w.pays(t, another, sold)
	w.completes(t, seller, another.ID)
	w.paidTo(t, next, paid)
	w.paidTo(t, phone, paid)
}

// copies puts a copy of a database in the place of another one, as a restore from a backup does: it is another database, by its
// oid. Nobody is connected meanwhile.
func (w *harness) copies(t *testing.T, from, to string) {
	t.Helper()
	db, err := sql.Open("postgres", w.Stack.Postgres.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // nothing of it is used any more
	db.SetMaxOpenConns(1)
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf(query, args...)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{from, to} {
		var is bool
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) = 1 FROM pg_database WHERE datname = $1`, name).Scan(&is); err != nil {
			t.Fatal(err)
		}
		if is {
			exec(`ALTER DATABASE %s ALLOW_CONNECTIONS false`, name)
			exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'`, name)
		}
	}
	exec(`DROP DATABASE IF EXISTS %s WITH (FORCE)`, to)
	town.Eventually(t, "a copy of the database", func() error {
		_, err := db.ExecContext(t.Context(), fmt.Sprintf(`CREATE DATABASE %s TEMPLATE %s OWNER %s`, to, from, store.RoleMigrate))
		return err
	})
	exec(`ALTER DATABASE %s ALLOW_CONNECTIONS true`, from)
	exec(`ALTER DATABASE %s ALLOW_CONNECTIONS true`, to)
}
