package store_test

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// A build with an older schema than the database's refuses, and a build of the same age changes nothing.
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

// Functions change without a new number. A build that does not know the database's set of functions is older, and
// would restore guards that were corrected since: it changes nothing.
func TestMigrateRefusesNewerFunctions(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db := storetest.DB(t, url)
	exec := func(query string) {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE OR REPLACE FUNCTION log_horizon() RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT 7::bigint $$`)
	exec(`UPDATE schema_code SET digest = 'of a newer build'`)
	before := schemaOf(t, db)
	err := store.Migrate(t.Context(), url)
	if exchange.CodeOf(err) != exchange.CodeStateConflict || !strings.Contains(exchange.MessageOf(err), "of a newer build") {
		t.Errorf("newer functions: %v", err)
	}
	if gone, came := differences(before, schemaOf(t, db)); len(gone)+len(came) > 0 {
		t.Errorf("the older build changed the schema: %s, %s", gone, came)
	}
	// The newer build knows the functions of an older one.
	_, listed, err := store.SchemaDigests()
	if err != nil || len(listed) == 0 {
		t.Fatalf("the listed digests: %v, %v", listed, err)
	}
	exec(`UPDATE schema_code SET digest = '` + listed[0] + `'`)
	if err := store.Migrate(t.Context(), url); err != nil {
		t.Errorf("functions of an older build: %v", err)
	}
	if now := schemaOf(t, db); now == before {
		t.Error("the functions were not written anew")
	}
}

// A process serves with its own functions and with newer ones, not with those that an interrupted migration left.
func TestSchemaIsChecked(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s, db := storetest.Open(t, url, store.Options{}), storetest.DB(t, url)
	now, listed, err := store.SchemaDigests()
	if err != nil || len(listed) < 2 {
		t.Fatalf("the listed digests: %v, %v", listed, err)
	}
	for _, c := range []struct{ made, refused string }{
		{`SELECT 1`, ""},
		{`UPDATE schema_code SET digest = 'of a newer build'`, ""},
		{`UPDATE schema_code SET digest = '` + listed[0] + `'`, listed[0]},
		{`UPDATE schema_code SET digest = '` + now + `'`, ""},
		{`DELETE FROM schema_code`, now},
		{`REVOKE SELECT ON schema_code FROM kivuko_api, kivuko_flows, kivuko_momo, kivuko_chain, kivuko_signer, kivuko_webhooks, kivuko_codec`, "not migrated by this build"},
		{`DROP TABLE schema_code`, "not migrated by this build"},
	} {
		if _, err := db.ExecContext(t.Context(), c.made); err != nil {
			t.Fatal(err)
		}
		err := s.CheckSchema(t.Context())
		if c.refused == "" && err != nil {
			t.Errorf("%s: %v", c.made, err)
		}
		if c.refused != "" && (exchange.CodeOf(err) != exchange.CodeStateConflict || !strings.Contains(exchange.MessageOf(err), c.refused)) {
			t.Errorf("%s: %v", c.made, err)
		}
	}
}

// A migration rewrites functions and grants, whatever their present state.
func TestMigrateWritesFunctionsAndGrantsAnew(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db := storetest.DB(t, url)
	before := schemaOf(t, db)
	for _, query := range []string{
		`CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$`,
		`DROP FUNCTION payment_hold(uuid)`,
		`GRANT DELETE ON ledger_lines TO kivuko_momo`,
		`REVOKE UPDATE ON orders FROM kivuko_flows`,
	} {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	if schemaOf(t, db) == before {
		t.Fatal("the description does not show the changes")
	}
	if err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	gone, came := differences(before, schemaOf(t, db))
	if len(gone)+len(came) > 0 {
		t.Errorf("not as before: %s, %s", gone, came)
	}
}

// Two processes that migrate an empty database concurrently wait for each other, and produce the same as one.
func TestMigrateTwiceAtOnce(t *testing.T) {
	t.Parallel()
	url := storetest.EmptyURL(t)
	var wg sync.WaitGroup
	var errs [2]error
	for i := range errs {
		wg.Go(func() { errs[i] = store.Migrate(t.Context(), url) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Errorf("one of two migrations: %v", err)
		}
	}
	gone, came := differences(schemaOf(t, storetest.DB(t, storetest.URL(t))), schemaOf(t, storetest.DB(t, url)))
	if len(gone)+len(came) > 0 {
		t.Errorf("not what one migration makes: %s, %s", gone, came)
	}
}

// The functions are created with unchecked bodies, because they refer to each other. Here they are checked.
func TestFunctionsFitTheTables(t *testing.T) {
	t.Parallel()
	db := storetest.DB(t, storetest.URL(t))
	functions, err := store.SchemaFunctions()
	if err != nil {
		t.Fatal(err)
	}
	for name, create := range functions {
		if !strings.Contains(create, "CREATE OR REPLACE FUNCTION "+name+"(") || strings.Count(create, "CREATE ") != 1 {
			t.Errorf("functions/%s.sql does not create exactly the function of its name", name)
		}
		if _, err := db.ExecContext(t.Context(), create); err != nil {
			t.Errorf("functions/%s.sql: %v", name, err)
		}
	}
}

// Every set of functions and grants is listed, so that builds can distinguish older from newer ones.
func TestDigestIsListed(t *testing.T) {
	t.Parallel()
	now, listed, err := store.SchemaDigests()
	if err != nil {
		t.Fatal(err)
	}
	if len(listed) > 0 && listed[len(listed)-1] == now {
		return
	}
	if !*update {
		t.Fatalf("the functions or grants changed: %s is not the last line of migrations/digests.txt. Run this test with -update, which adds it.", now)
	}
	if slices.Contains(listed, now) {
		t.Fatalf("the functions and grants are those of an earlier build (%s): builds in between would refuse this one", now)
	}
	f, err := os.OpenFile("migrations/digests.txt", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(now + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The agreed value of a coin is empty until two officers agree: no migration sets it.
func TestFirstValuationsAreNotAgreed(t *testing.T) {
	t.Parallel()
	db := storetest.DB(t, storetest.URL(t))
	var coins, agreed int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*), count(agreed) FROM valuations`).Scan(&coins, &agreed); err != nil {
		t.Fatal(err)
	}
	if coins == 0 || agreed != 0 {
		t.Errorf("of %d coins, %d have an agreed value before there are any officers", coins, agreed)
	}
}
