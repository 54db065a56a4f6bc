package storetest_test

import (
	"context"
	"database/sql"
	"testing"

	"kivuko/store/storetest"
)

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	first, second := storetest.DB(t, storetest.URL(t)), storetest.DB(t, storetest.URL(t))
	if _, err := first.ExecContext(t.Context(), `INSERT INTO login_failures VALUES ('ip:192.0.2.1', 1, NULL, now())`); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := second.QueryRowContext(t.Context(), `SELECT count(*) FROM login_failures`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 0 {
		t.Fatalf("the second database has %d rows of the first", n)
	}
}

// used runs a test with a database, and returns the database's URL.
func used(t *testing.T, name string, with func(t *testing.T, dsn string)) (dsn string) {
	t.Helper()
	if !t.Run(name, func(t *testing.T) {
		dsn = storetest.URL(t)
		with(t, dsn)
	}) {
		t.FailNow()
	}
	return dsn
}

// executor is a pool or one of its connections.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func run(t *testing.T, db executor, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// content is what a test can find in a database: rows of tables, and what is to come of sequences.
const content = `SELECT concat_ws(' ', (SELECT sum(hashtextextended(x::text, 0)) FROM state_transitions x), (SELECT string_agg(x::text, ',') FROM approval_rules x),
	(SELECT count(*) FROM login_failures), (SELECT count(*) FROM users), (SELECT string_agg(coalesce(last_value::text, '-'), ',' ORDER BY sequencename) FROM pg_sequences),
	current_user, current_setting('statement_timeout'), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
	(SELECT count(*) FROM pg_prepared_statements), to_regclass('pg_temp.left'))`

// What a test wrote, and the state in which it left its connections, is gone for the next test that has the same database.
func TestAUsedDatabaseIsAsNew(t *testing.T) { //nolint:paralleltest // a parallel test could take the database
	var fresh, again string
	reads := func(to *string) func(*testing.T, string) {
		return func(t *testing.T, dsn string) {
			if err := storetest.DB(t, dsn).QueryRowContext(t.Context(), content).Scan(to); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := used(t, "reads", reads(&fresh))
	second := used(t, "writes", func(t *testing.T, dsn string) {
		c, err := storetest.DB(t, dsn).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		run(t, c, `SET session_replication_role = replica`, `INSERT INTO login_failures VALUES ('ip:192.0.2.1', 1, NULL, now())`, `DELETE FROM state_transitions`,
			`DELETE FROM approval_rules`, `SELECT setval('ledger_accounts_id_seq', 99)`, `RESET session_replication_role`,
			`CREATE TEMPORARY TABLE "left" (n int)`, `PREPARE p AS SELECT 1`, `SELECT pg_advisory_lock(1)`, `SET statement_timeout = '1h'`, `SET ROLE kivuko_tests`)
	})
	third := used(t, "reads again", reads(&again))
	if first != second || second != third {
		t.Errorf("the tests had the databases %s, %s and %s", first, second, third)
	}
	if fresh != again {
		t.Errorf("the next test finds\n%s\nand not\n%s", again, fresh)
	}
}

// No test gets a database whose schema another one has changed, or that a program still uses.
func TestAChangedDatabaseIsNotUsedAgain(t *testing.T) { //nolint:paralleltest // a parallel test could take the database
	for name, statement := range map[string]string{
		"function": `CREATE OR REPLACE FUNCTION database_identity() RETURNS text LANGUAGE sql STABLE AS $$ SELECT 'put back' $$`,
		"column":   `ALTER TABLE users ADD COLUMN more text`,
		"trigger":  `ALTER TABLE users DISABLE TRIGGER users_staff_active`,
		"grant":    `GRANT DELETE ON users TO kivuko_api`,
		"index":    `DROP INDEX events_owner_idx`,
		"setting":  `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = %L', current_database(), '8MB'); END $$`,
		"plans":    `ANALYZE refund_policy`, // too small to be analysed by PostgreSQL itself
	} {
		before := used(t, name, func(t *testing.T, dsn string) { run(t, storetest.DB(t, dsn), statement) })
		if after := used(t, "after "+name, func(*testing.T, string) {}); after == before {
			t.Errorf("the database is used again after a change of a %s", name)
		}
	}
}

// A program that a test leaves running does not get into the database of the next test, though it connects again.
func TestNothingGoesOnInAUsedDatabase(t *testing.T) { //nolint:paralleltest // a parallel test could take the database
	var left *sql.DB
	used(t, "leaves a program", func(t *testing.T, dsn string) {
		var err error
		if left, err = sql.Open("postgres", dsn); err == nil {
			err = left.PingContext(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	defer func() { _ = left.Close() }()
	used(t, "next", func(t *testing.T, _ string) {
		for range 3 { // the first time on the connection that was ended
			if _, err := left.ExecContext(t.Context(), `SELECT 1`); err == nil {
				t.Error("a program still reaches the database")
			}
		}
	})
}
