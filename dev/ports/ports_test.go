package ports_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kivuko/dev/ports"
)

// childVariable turns this test binary into another process that gets ports.
const childVariable = "PORTS_TEST_CHILD"

// many is so large that two processes that drew ports by chance would share one.
const many = 400

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	for range many {
		fmt.Println(ports.Free())
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // it holds its ports until its parent has its own
}

// Two processes never get the same port, even before one of them listens on it.
func TestProcessesShareNoPort(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1")
	goOn, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	got, lines := map[int]bool{}, bufio.NewScanner(said)
	for range many {
		if !lines.Scan() {
			t.Fatalf("the other process got %d ports: %v", len(got), lines.Err())
		}
		port, err := strconv.Atoi(strings.TrimSuffix(lines.Text(), " <nil>"))
		if err != nil {
			t.Fatal(err)
		}
		got[port] = true
	}
	for range many {
		port, err := ports.Free()
		if err != nil {
			t.Fatal(err)
		}
		if got[port] {
			t.Errorf("the port %d was got twice", port)
		}
		got[port] = true
	}
	_ = goOn.Close()
	if err := child.Wait(); err != nil || len(got) != 2*many {
		t.Errorf("%d different ports, %v", len(got), err)
	}
}

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
