package store_test

import (
	"database/sql"
	_ "embed"
	"flag"
	"os"
	"strings"
	"testing"

	"kivuko/store/storetest"
)

// update writes testdata/schema.txt anew, for a change of the schema that is meant:
//
//	bin/with-postgres -- go test ./store -run TestSchema -update
var update = flag.Bool("update", false, "write the description of the schema anew")

const schemaFile = "testdata/schema.txt"

//go:embed testdata/schema.sql
var describeSchema string

// TestSchemaIsAsDescribed compares the result of the migrations with its committed description, so that each change of
// a table, a guard, a function or a right shows in the diff of that file.
func TestSchemaIsAsDescribed(t *testing.T) {
	t.Parallel()
	now := schemaOf(t, storetest.DB(t, storetest.URL(t)))
	if *update {
		if err := os.WriteFile(schemaFile, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	committed, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	gone, came := differences(string(committed), now)
	if len(gone)+len(came) > 0 {
		t.Errorf("the schema is not what %s says. Run this test with -update when the change is meant.\ngone:\n%s\nnew:\n%s",
			schemaFile, strings.Join(gone, "\n"), strings.Join(came, "\n"))
	}
}

// schemaOf describes a database, one line per object.
func schemaOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), describeSchema)
	if err != nil {
		t.Fatalf("describe the schema: %v", err)
	}
	defer func() { _ = rows.Close() }()
	var b strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		b.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("describe the schema: %v", err)
	}
	return b.String()
}

// differences returns the lines that only the first text has, and those that only the second has.
func differences(before, after string) (gone, came []string) {
	count := map[string]int{}
	for line := range strings.Lines(before) {
		count[line]++
	}
	for line := range strings.Lines(after) {
		if count[line] == 0 {
			came = append(came, strings.TrimSuffix(line, "\n"))
		} else {
			count[line]--
		}
	}
	for line := range strings.Lines(before) {
		if count[line] > 0 {
			count[line]--
			gone = append(gone, strings.TrimSuffix(line, "\n"))
		}
	}
	return gone, came
}
