package storetest_test

import (
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
