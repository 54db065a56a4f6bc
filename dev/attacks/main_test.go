package attacks

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"kivuko/dev/testbed"
	"kivuko/exchange"
)

// Environment variables of the tests.
const (
	// databaseVariable is set by `make test`, to a new value each time. Reading it keeps `go test` from using a cached result: it
	// does not see changes of the product's binary, which is built here.
	databaseVariable = "KIVUKO_TEST_DATABASE_URL"
	// keepVariable names a directory in which state and logs are kept after the tests.
	keepVariable = "KIVUKO_ATTACKS_DIR"
	// atOnce is how many attacks are played at once. They mostly wait for the stack, so it is higher than the number of cores.
	atOnce = "8"
)

// harness is the only stack of this package. One network is enough: what is attacked is above them.
type harness struct {
	*testbed.Testbed
	others sync.WaitGroup // tests that have begun and are not the last
}

var theHarness = sync.OnceValues(func() (*harness, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return nil, err
	}
	s, err := testbed.Start(testbed.Options{Root: root, Dir: theDir, Without: []exchange.Network{exchange.Ethereum, exchange.Solana}})
	if err == nil {
		opened = s
	}
	return &harness{Testbed: s}, err
})

var (
	theDir string
	opened *testbed.Testbed
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	_ = os.Getenv(databaseVariable)
	dir, remove, err := testbed.Dir(keepVariable, "kivuko-attacks-")
	defer remove()
	if err != nil {
		fmt.Fprintln(os.Stderr, "attacks:", err)
		return 1
	}
	theDir = dir
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, "attacks:", err)
		return 1
	}
	code := m.Run()
	if opened != nil {
		if err := opened.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "attacks: the stack did not stop cleanly:", err)
			code = max(code, 1)
		}
	}
	return code
}

// start starts the stack with the first test.
func start(t *testing.T) *harness {
	t.Helper()
	if testing.Short() {
		t.Skip("the whole stack is not for -short")
	}
	w, err := theHarness()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// open is for an attack that changes what others meet: a rule, a chain, a process. It is played alone.
func open(t *testing.T) *harness {
	t.Helper()
	w := start(t)
	w.others.Add(1)
	t.Cleanup(w.others.Done)
	return w
}

// openBeside is for an attack that is played while others are.
func openBeside(t *testing.T) *harness {
	t.Helper()
	w := open(t)
	t.Parallel()
	return w
}

// openLast is for the one attack after which nothing is as it was. Tests that run in parallel go on when all have begun.
func openLast(t *testing.T) *harness {
	t.Helper()
	w := start(t)
	t.Parallel()
	w.others.Wait()
	return w
}
