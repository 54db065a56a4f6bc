package attacks

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/dev/testbed"
	"kivuko/store"
	"kivuko/workflows"
)

// D4: a database that was put back from before a payout made it again, because only the chains asked which database it is. Now
// nothing is asked of the operator until two officers, who see its report, have released the database.
func TestD4_ADatabaseIsPutBack(t *testing.T) {
	w := openLast(t)
	seller, phone := w.Amina(t), testbed.NewPhone()
	o := w.sells(t, seller, phone)
	payouts := w.Stack.Supervisor.Child(stack.ProcessWorker("momo"))
	if err := payouts.Stop(); err != nil { // the backup is of a moment before the payout
		t.Fatal(err)
	}
	w.pays(t, o, sold)
	testbed.Eventually(t, "the payout is to be made", func() error {
		d, err := w.Temporal.DescribeWorkflowExecution(t.Context(), workflows.OffRampID(o.ID), "")
		if err != nil {
			return err
		}
		for _, a := range d.GetPendingActivities() {
			if a.GetActivityType().GetName() == "SubmitPayout" {
				return nil
			}
		}
		return errors.New("it is not")
	})
	w.copies(t, "kivuko", "kivuko_backup")
	if err := payouts.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := w.completes(t, seller, o.ID)
	w.paidTo(t, phone, paid)
	w.ended(t, workflows.OffRampID(o.ID))

	processes := []string{stack.ProcessAPI}
	for _, queue := range w.Stack.Served() {
		processes = append(processes, stack.ProcessWorker(queue))
	}
	for _, name := range processes { // as docs/deployment.md says
		if err := w.Stack.Supervisor.Child(name).Stop(); err != nil {
			t.Fatal(err)
		}
	}
	w.copies(t, "kivuko_backup", "kivuko")
	for _, name := range processes {
		if err := w.Stack.Supervisor.Child(name).Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.resumed(t)
	w.parked(t, o.ID, "momo-suspended")
	w.paidTo(t, phone, paid)

	// Two officers compare the operator's report with the books, take out what was paid, and release.
	var waits testbed.Waits
	w.Trigger(t, "watch-float")
	testbed.Eventually(t, "a report to compare with", func() error {
		return w.Admin(t).Post(t.Context(), auth+"/momo/release", testbed.Key(), map[string]any{"note": "one payout was lost"}, &waits)
	})
	confirm := auth + "/approvals/changes/" + waits.Changes[0].ID.String() + "/confirm"
	err := w.Admin(t).Post(t.Context(), confirm, testbed.Key(), map[string]any{"digest": waits.Changes[0].Digest}, nil)
	refused(t, "who asked for the release confirms it", err, http.StatusForbidden, "forbidden")
	w.paidTo(t, phone, paid)
	// The crypto does not go back to a seller who has the shillings, whatever one officer asks for.
	if err := testbed.Insist(t.Context(), w.Officer(t), orders+o.ID.String()+"/refund", testbed.Key(), map[string]any{"note": "the payee was not paid"}, nil); err != nil {
		t.Fatal(err)
	}
	w.parked(t, o.ID, "momo-suspended")
	var attested testbed.Waits
	in := map[string]any{"note": done.Receipt.String}
	if err := testbed.Insist(t.Context(), w.Admin(t), orders+o.ID.String()+"/resolve", testbed.Key(), in, &attested); err != nil {
		t.Fatal(err)
	}
	w.Agree(t, attested)
	w.until(t, w.login(t, demo.CustomerEmail), o.ID, "booked as paid", func(o testbed.Order) bool { return o.Status == "completed" })
	w.Agree(t, waits)
	w.parked(t, o.ID, "payout-sent_before") // the crypto has gone to its buyer already, which the chain tells
	next := testbed.NewPhone()
	seller = w.login(t, demo.CustomerEmail)
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
	testbed.Eventually(t, "a copy of the database", func() error {
		_, err := db.ExecContext(t.Context(), fmt.Sprintf(`CREATE DATABASE %s TEMPLATE %s OWNER %s`, to, from, store.RoleMigrate))
		return err
	})
	exec(`ALTER DATABASE %s ALLOW_CONNECTIONS true`, from)
	exec(`ALTER DATABASE %s ALLOW_CONNECTIONS true`, to)
}
