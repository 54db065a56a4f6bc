// Package ports hands out loopback TCP ports and remembers them, so that a second
// run answers at the same addresses as the first.
package ports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// Ports are drawn below the range that Linux uses for outgoing connections
// (32768 and up), so that a remembered port is seldom found taken by one.
const (
	lowest  = 15000
	highest = 29999
)

// Loopback is the only address that anything of the local stack binds.
const Loopback = "127.0.0.1"

// IsFree reports whether a listener can be opened on the loopback port now.
func IsFree(port int) bool {
	l, err := net.Listen("tcp", Address(port)) //nolint:noctx // binding a local port does not wait
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Address is the loopback host:port of a port.
func Address(port int) string { return net.JoinHostPort(Loopback, strconv.Itoa(port)) }

// blockSize is how many ports a process takes at a time.
const blockSize = 50

// blocks are the ranges of ports of this process. It listens on the first port of each until it ends, which keeps other
// processes away from the rest: seconds may pass until the program that gets a port listens on it.
var blocks struct {
	sync.Mutex
	guards    []net.Listener
	next, end int // what is left of the newest one
}

// Free returns a loopback port on which no process listens now and that no process has got from this function before.
func Free() (int, error) {
	blocks.Lock()
	defer blocks.Unlock()
	for {
		for blocks.next < blocks.end {
			port := blocks.next
			blocks.next++
			if IsFree(port) {
				return port, nil
			}
		}
		if err := takeBlock(); err != nil {
			return 0, err
		}
	}
}

// takeBlock takes a range that no other process has.
func takeBlock() error {
	const count = (highest - lowest + 1) / blockSize
	start := rand.IntN(count) //nolint:gosec // G404: a port number is no secret.
	for i := range count {
		first := lowest + (start+i)%count*blockSize
		guard, err := net.Listen("tcp", Address(first)) //nolint:noctx // binding a local port does not wait
		if err != nil {
			continue
		}
		blocks.guards = append(blocks.guards, guard)
		blocks.next, blocks.end = first+1, first+blockSize
		return nil
	}
	return fmt.Errorf("all ports between %d and %d on %s are taken", lowest, highest, Loopback)
}

// Book is a list of named ports, kept in a file or in memory alone.
type Book struct {
	path  string
	ports map[string]int
}

// NewBook returns a book that is kept in memory alone.
func NewBook() *Book { return &Book{ports: map[string]int{}} }

// OpenBook reads the book at path; a missing file is an empty book.
func OpenBook(path string) (*Book, error) {
	b := &Book{path: path, ports: map[string]int{}}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &b.ports); err != nil {
		return nil, fmt.Errorf("port book %s: %w", path, err)
	}
	return b, nil
}

// Assign returns the port remembered under name while it is free, else preferred
// (0: none) while that is free, else any free one, and remembers the answer.
// No two names of a book get the same port.
func (b *Book) Assign(name string, preferred int) (int, error) {
	for _, port := range []int{b.ports[name], preferred} {
		if port != 0 && !b.usedByOther(name, port) && IsFree(port) {
			return port, b.set(name, port)
		}
	}
	const tries = 100
	for range tries {
		port, err := Free()
		if err != nil {
			return 0, err
		}
		if !b.usedByOther(name, port) {
			return port, b.set(name, port)
		}
	}
	return 0, fmt.Errorf("no free port found for %s", name)
}

func (b *Book) usedByOther(name string, port int) bool {
	for other, p := range b.ports {
		if other != name && p == port {
			return true
		}
	}
	return false
}

func (b *Book) set(name string, port int) error {
	if b.ports[name] == port {
		return nil
	}
	b.ports[name] = port
	if b.path == "" {
		return nil
	}
	raw, err := json.MarshalIndent(b.ports, "", "  ")
	if err != nil {
		return err
	}
	const ownerOnly, dirMode = 0o600, 0o755
	if err := os.MkdirAll(filepath.Dir(b.path), dirMode); err != nil {
		return err
	}
	// A rename is atomic: a crash leaves the old book or the new one, never half.
	next := b.path + ".new"
	if err := os.WriteFile(next, append(raw, '\n'), ownerOnly); err != nil {
		return err
	}
	return os.Rename(next, b.path)
}
