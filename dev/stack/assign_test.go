package stack

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// TestTakenPortsAreReported: the stack reports when another program has the API's usual port.
func TestTakenPortsAreReported(t *testing.T) {
	if l, err := net.Listen("tcp", "127.0.0.1:8080"); err == nil {
		defer func() { _ = l.Close() }() // the test is over
	}
	book := filepath.Join(t.TempDir(), "ports.json")
	for _, again := range []string{"the first run", "the next run"} {
		a, elsewhere, err := assign(book, false)
		if err != nil {
			t.Fatal(err)
		}
		reported := strings.Join(elsewhere, "\n")
		_, port, _ := net.SplitHostPort(a.API)
		if port == "8080" || !strings.Contains(reported, "api is at "+port+" instead of 8080") {
			t.Errorf("%s: the API is at %s, and it says %q", again, a.API, reported)
		}
	}
	if _, elsewhere, err := assign(filepath.Join(t.TempDir(), "ports.json"), true); err != nil || len(elsewhere) != 0 {
		t.Errorf("a stack of tests tells of %v, %v", elsewhere, err)
	}
}
