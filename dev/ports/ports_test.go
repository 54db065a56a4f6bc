package ports_test

import (
	"net"
	"path/filepath"
	"testing"

	"kivuko/dev/ports"
)

func book(t *testing.T, path string) *ports.Book {
	t.Helper()
	b, err := ports.OpenBook(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func assign(t *testing.T, b *ports.Book, name string, preferred int) int {
	t.Helper()
	port, err := b.Assign(name, preferred)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func take(t *testing.T, port int) {
	t.Helper()
	l, err := net.Listen("tcp", ports.Address(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
}

func TestBookRemembersAcrossRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "ports.json")
	first := assign(t, book(t, path), "api", 0)
	if again := assign(t, book(t, path), "api", 0); again != first {
		t.Errorf("the port changed from %d to %d", first, again)
	}
}

func TestTakenPortIsReplacedForGood(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ports.json")
	first := assign(t, book(t, path), "api", 0)
	take(t, first)
	second := assign(t, book(t, path), "api", 0)
	if second == first {
		t.Fatal("a taken port was assigned")
	}
	if again := assign(t, book(t, path), "api", 0); again != second {
		t.Errorf("the replacement %d was forgotten for %d", second, again)
	}
}

func TestPreferredPort(t *testing.T) {
	b := ports.NewBook()
	preferred, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	if got := assign(t, b, "api", preferred); got != preferred {
		t.Errorf("the preferred port %d was free, and %d was assigned", preferred, got)
	}
	if got := assign(t, b, "codec", preferred); got == preferred {
		t.Error("two names got one port")
	}
}
