package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"kivuko/dev/ports"
	"kivuko/dev/postgres"
	"kivuko/dev/supervisor"
	"kivuko/exchange"
)

// Options configure a stack.
type Options struct {
	// Root is the checkout; State is the directory of data that is kept between runs (empty: Root/.local).
	Root, State string
	// Product is the path of the product's binary (empty: Root/bin/kivuko).
	Product string
	// Self is the path of this program, which also runs Temporal, the chains' nodes and the sandbox
	// as separate processes.
	Self string
	// Out gets the messages for the user.
	Out io.Writer
	// AnyPorts takes free ports instead of the usual ones, so that tests don't collide with each other
	// or with a running stack.
	AnyPorts bool
	// UnsafeDatabase makes the database faster for tests; a crash of the machine can lose its data.
	UnsafeDatabase bool
	// TronFlags, EthereumFlags, SolanaFlags and MomoFlags are additional flags of the nodes and of the sandbox.
	TronFlags, EthereumFlags, SolanaFlags, MomoFlags []string
	// Without are networks whose nodes and workers don't run and that the product's configuration leaves out.
	Without []exchange.Network
	// StaffLogin puts the Web UI behind the login of staff, as in production. Otherwise it is open to everybody on this machine.
	StaffLogin bool
	// DynamicConfig is the path of Temporal's dynamic configuration (empty: that of Root).
	DynamicConfig string
	// FetchPrograms downloads Solana's token programs and Ethereum's contracts of Safe from npm when they are not cached.
	// Without the programs the stack runs without Solana, without the contracts there are no Safes on Ethereum.
	FetchPrograms bool
}

// Step is one stage of bringing the stack up.
type Step struct {
	Name string
	Run  func(context.Context, *Stack) error
}

// Stack is a running local stack. Steps read its addresses and add their notes.
type Stack struct {
	Options
	Addresses  Addresses
	Supervisor *supervisor.Supervisor
	Postgres   *postgres.Server

	lock   *os.File
	solana bool // its node runs
	safe   bool // Ethereum has the contracts of Safe
	mu     sync.Mutex
	notes  []note
	extra  map[string]string  // variables that steps set
	stop   context.CancelFunc // ends the watch over PostgreSQL
	watch  sync.WaitGroup
}

// Addresses are the loopback host:port pairs of all servers.
type Addresses struct {
	API, Codec             string // with StaffLogin, browsers reach the Web UI at the codec's
	Temporal, TemporalUI   string
	TronGRPC, TronSolidity string
	TronHTTP, TronControl  string // the node's HTTP API, and its fault switches
	EthereumRPC            string // JSON-RPC over HTTP and WebSocket
	EthereumControl        string // the node's fault switches
	SolanaRPC, SolanaWS    string // JSON-RPC over HTTP, and its subscriptions
	SolanaControl          string // the node's fault switches
	Momo                   string // the gateway, its page and its fault switches
	Messages, Mail         string // the page of messages with the SMS service, and the mail server
}

// note is a line of the summary that is printed when the stack is up.
type note struct{ label, text string }

// Open locks the state directory and assigns the ports. It refuses a second stack on the same
// directory.
func Open(opts Options) (*Stack, error) {
	if opts.State == "" {
		opts.State = filepath.Join(opts.Root, ".local")
	}
	if opts.Product == "" {
		opts.Product = filepath.Join(opts.Root, "bin", "kivuko")
	}
	if opts.DynamicConfig == "" {
		opts.DynamicConfig = filepath.Join(opts.Root, "docker", "dynamicconfig.yaml")
	}
	const dirMode = 0o755
	if err := os.MkdirAll(opts.State, dirMode); err != nil {
		return nil, fmt.Errorf("the state directory can't be made: %w", err)
	}
	lock, err := takeLock(filepath.Join(opts.State, "lock"))
	if err != nil {
		return nil, err
	}
	s := &Stack{Options: opts, lock: lock, stop: func() {}}
	var elsewhere []string
	if s.Addresses, elsewhere, err = assign(filepath.Join(opts.State, "ports.json"), opts.AnyPorts); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if s.Supervisor, err = supervisor.New(filepath.Join(opts.State, "logs"), opts.Out); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if len(elsewhere) > 0 {
		s.Supervisor.Say("Other programs had the usual ports when this state directory chose its own: %s", strings.Join(elsewhere, ", "))
	}
	return s, nil
}

// assign returns a port for every server: that of the last run, else the usual one unless anyPort is
// set, else any free one. elsewhere describes the servers that are not at their usual port.
func assign(path string, anyPort bool) (a Addresses, elsewhere []string, err error) {
	book, err := ports.OpenBook(path)
	if err != nil {
		return Addresses{}, nil, err
	}
	for _, p := range []struct {
		name      string
		preferred int
		address   *string
	}{
		{"api", 8080, &a.API},
		{"codec", 8081, &a.Codec},
		{"temporal", 7233, &a.Temporal},
		{"temporal-ui", 8233, &a.TemporalUI},
		{"tron-grpc", 50051, &a.TronGRPC},
		{"tron-solidity", 50061, &a.TronSolidity},
		{"tron-http", 8090, &a.TronHTTP},
		{"tron-control", 8091, &a.TronControl},
		{"ethereum-rpc", 8545, &a.EthereumRPC},
		{"ethereum-control", 8546, &a.EthereumControl},
		{"solana-rpc", 8899, &a.SolanaRPC},
		{"solana-ws", 8900, &a.SolanaWS},
		{"solana-control", 8901, &a.SolanaControl},
		{"momo", 8070, &a.Momo},
		{"messages", 8071, &a.Messages},
		{"mail", 8025, &a.Mail},
	} {
		if anyPort {
			p.preferred = 0
		}
		port, err := book.Assign(p.name, p.preferred)
		if err != nil {
			return Addresses{}, nil, err
		}
		if p.preferred != 0 && port != p.preferred {
			elsewhere = append(elsewhere, fmt.Sprintf("%s is at %d instead of %d", p.name, port, p.preferred))
		}
		*p.address = ports.Address(port)
	}
	return a, elsewhere, nil
}

// takeLock locks the state directory. When a stack has it, the error names that stack's process.
func takeLock(path string) (*os.File, error) {
	const mode = 0o600
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, mode)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%s is not writable for this user: was the stack run as root before? `make clean-data` as root removes its data", path)
	}
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, readErr := io.ReadAll(f)
		_ = f.Close() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) && readErr == nil {
			return nil, fmt.Errorf("the stack of %s is running already, as process %s: "+
				"stop it with Ctrl-C in its terminal first", filepath.Dir(path), strings.TrimSpace(string(holder)))
		}
		return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, readErr))
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Up runs the steps in order and prints the duration of each.
func (s *Stack) Up(ctx context.Context, steps []Step) error {
	for _, step := range steps {
		began := time.Now()
		if err := step.Run(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", step.Name, err)
		}
		s.Supervisor.Say("%-34s %5.1f s", step.Name, time.Since(began).Seconds())
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Note adds a line to the summary, for example an address or a login.
func (s *Stack) Note(label, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, note{label, text})
}

// Summary prints the notes in the order in which they were added.
func (s *Stack) Summary() {
	s.mu.Lock()
	defer s.mu.Unlock()
	width := 0
	for _, n := range s.notes {
		width = max(width, len(n.label))
	}
	s.Supervisor.Say("")
	for _, n := range s.notes {
		s.Supervisor.Say("  %-*s  %s", width, n.label, n.text)
	}
	s.Supervisor.Say("\nThe stack is up. Logs: %s. Ctrl-C stops everything; the data is kept for the next run.",
		filepath.Join(s.State, "logs"))
}

// Down stops everything in the reverse order of the start.
func (s *Stack) Down() error {
	s.stop()
	err := s.Supervisor.Stop()
	s.watch.Wait()
	if s.Postgres != nil {
		err = errors.Join(err, s.Postgres.Stop())
	}
	return errors.Join(err, s.lock.Close())
}
