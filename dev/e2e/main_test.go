// Package e2e tests all of Kivuko on one machine: the product's binary and processes, a real Temporal on
// PostgreSQL, the chains' nodes and the mobile money operator's sandbox. It checks results with the outside
// records: the chains' own records of movements and the operator's own books.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"kivuko/dev/testbed"
)

// Environment variables of the tests.
const (
	// databaseVariable is set by `make test`, to a new value each time. Reading it keeps `go test` from using a
	// cached result: it does not see changes of the product's binary, which is built here.
	databaseVariable = "KIVUKO_TEST_DATABASE_URL"
	// keepVariable names a directory in which state and logs are kept after the tests.
	keepVariable = "KIVUKO_E2E_DIR"
	// atOnce is the number of parallel scenarios. They mostly wait for the stack, so it is higher than the number of
	// cores.
	atOnce = "8"
	// soakVariable is the number of orders of the soak; without it there is none.
	soakVariable = "KIVUKO_E2E_SOAK"
)

// soakOrders returns the number of orders of the soak.
func soakOrders(t *testing.T) int {
	t.Helper()
	text := os.Getenv(soakVariable)
	if text == "" {
		t.Skip("the soak runs on request: " + soakVariable + " says how many orders")
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s must be a number of orders, not %q", soakVariable, text)
	}
	return n
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// accountForPoints reports crash points that the tests have passed and that no trial plays.
func accountForPoints() int {
	if theHarness == nil {
		return 0
	}
	all, err := passed(theHarness.crash)
	points := unaccounted(all)
	if err == nil && len(points) == 0 {
		return 0
	}
	fmt.Fprintf(os.Stderr, "e2e: these points were passed, and no row of the table of crash trials plays them: %v (%v)\n", points, err)
	return 1
}

func run(m *testing.M) int {
	_ = os.Getenv(databaseVariable)
	dir, remove, err := testbed.Dir(keepVariable, "kivuko-e2e-")
	defer remove()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	theDir = dir
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	code := m.Run()
	code = max(code, accountForPoints())
	if err := closeHarness(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: the stack did not stop cleanly:", err)
		code = max(code, 1)
	}
	return code
}
