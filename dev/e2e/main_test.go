// Package e2e proves the whole of Kivuko: the product's own binary, its processes, a real Temporal on
// PostgreSQL, a TRON node and the mobile money operator's sandbox, all on one machine. What it believes is
// what the outside says: the chain's own record of movements and the operator's own books.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// What the environment may ask for.
const (
	// databaseVariable is set by `make test`, anew each time. Reading it keeps `go test` from showing a
	// remembered result: it can't see that the product's binary, which is built here, has changed.
	databaseVariable = "KIVUKO_TEST_DATABASE_URL"
	// keepVariable names a directory in which state and logs stay, to be looked at.
	keepVariable = "KIVUKO_E2E_DIR"
	// atOnce is how many stories go side by side. They wait for the stack for the most part, so that it is more than
	// this machine has cores.
	atOnce = "5"
	// soakVariable is how many orders the soak runs; without it there is none.
	soakVariable = "KIVUKO_E2E_SOAK"
)

// soakOrders is how long the soak shall be.
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

// accountForPoints reports points that the tests have passed and that no trial plays.
func accountForPoints() int {
	if theWorld == nil {
		return 0
	}
	all, err := passed(theWorld.crash)
	points := unaccounted(all)
	if err == nil && len(points) == 0 {
		return 0
	}
	fmt.Fprintf(os.Stderr, "e2e: these points were passed, and no row of the table of crash trials plays them: %v (%v)\n", points, err)
	return 1
}

func run(m *testing.M) int {
	_ = os.Getenv(databaseVariable)
	dir := os.Getenv(keepVariable)
	if dir == "" {
		made, err := os.MkdirTemp("", "kivuko-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
		defer func() { _ = os.RemoveAll(made) }() // only a full disk would mind
		dir = made
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755) // the database runs as a user of its own where we are root
	}
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
	if err := closeWorld(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: the stack did not stop cleanly:", err)
		code = max(code, 1)
	}
	return code
}
