// Package testbed runs all of Kivuko for tests that play it from outside: it builds the product and the local stack, starts both
// with the demo's people, and asks for them what such tests ask of the API, of the chains and of the mobile money operator.
package testbed

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/lib/pq" // the driver of DB
	"go.temporal.io/sdk/client"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/store"
)

// Short intervals where the product only waits.
const (
	TronPoll        = 150 * time.Millisecond
	TransactionLife = time.Minute // on TRON

	blockInterval  = 100 * time.Millisecond
	ethereumBlocks = 200 * time.Millisecond
	ethereumIdle   = time.Second
	solanaSlots    = 100 * time.Millisecond
	buildTimeout   = 20 * time.Minute // the first time links the Temporal server
	startTimeout   = 5 * time.Minute
)

// plentyOfFees is more than the networks' fees of all tests.
const plentyOfFees = "ETH:1000000,TRX:1000000000,SOL:1000000"

// Options say what runs.
type Options struct {
	Root, Dir     string             // the checkout, and where state and logs are
	Without       []exchange.Network // that don't run
	DynamicConfig string             // of Temporal; empty: the checkout's
	Environment   map[string]string  // more variables of the product
	// Before is called when the stack has its addresses and nothing runs.
	Before func(context.Context, *Testbed) error
}

// Testbed is the running stack, and the clients that use and check it.
type Testbed struct {
	Stack    *stack.Stack
	Product  string // its binary
	Temporal client.Client
	DB       *sql.DB // as the owner of everything
	Store    *store.Store
	Said     *Transcript
	people   people
}

// Dir returns the directory that a variable names, which is kept, or a new one that remove removes. It is one that the database,
// which runs as another user when we are root, can read.
func Dir(variable, name string) (dir string, remove func(), err error) {
	remove = func() {}
	if dir = os.Getenv(variable); dir == "" { //nolint:forbidigo // a fixture of tests
		if dir, err = os.MkdirTemp("", name); err != nil {
			return "", remove, err
		}
		made := dir
		remove = func() { _ = os.RemoveAll(made) } // leftovers do no harm
	}
	if dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	return dir, remove, err
}

// Start builds the product with crash points, and the local stack, starts them and fills them with the demo's data.
func Start(o Options) (*Testbed, error) {
	s := &Testbed{Said: &Transcript{}}
	self, err := s.buildAll(o.Root)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s.Stack, err = stack.Open(stack.Options{
		Root: o.Root, State: filepath.Join(o.Dir, "state"), Product: s.Product, Self: self, Out: s.Said, AnyPorts: true, UnsafeDatabase: true,
		Without: o.Without, DynamicConfig: o.DynamicConfig, StaffLogin: true,
		TronFlags:     []string{"--interval", blockInterval.String()},
		EthereumFlags: []string{"--interval", ethereumBlocks.String(), "--idle", ethereumIdle.String()},
		SolanaFlags:   []string{"--interval", solanaSlots.String()},
		FetchPrograms: true, // without them the scenarios of Solana are skipped
		// Prompts are answered at once; late results wait until a test releases them.
		MomoFlags: []string{"--answer-delay", "0s", "--late-delay", "-1s"},
	})
	if err != nil {
		return nil, err
	}
	for _, variables := range []map[string]string{{
		"API_RATE_FACTOR": "1000", "TRON_POLL": TronPoll.String(), "TRON_TRANSACTION_LIFE": TransactionLife.String(), "ETHEREUM_POLL": ethereumBlocks.String(),
		"LIMIT_CUSTOMER_ORDERS": "100000", "LIMIT_PROMPTS_PER_PHONE": "100000", "LIMIT_CUSTOMER_TRANSFERS": "100000", // one customer opens all orders
		"LIMIT_USER_FEES": plentyOfFees, "LIMIT_CUSTOMER_FEES": plentyOfFees, "LIMIT_MERCHANT_FEES": plentyOfFees, "LIMIT_HOUSE_FEES": plentyOfFees,
		"SENDING_AHEAD_LIMIT": "0", // tests count the top-ups of their payments
	}, o.Environment} {
		for name, value := range variables {
			s.Stack.SetEnvironment(name, value)
		}
	}
	if o.Before != nil {
		err = o.Before(ctx, s)
	}
	if err = errors.Join(err, s.fill(ctx)); err != nil {
		return nil, errors.Join(fmt.Errorf("%w\n%s", err, s.Said), s.Stack.Down())
	}
	return s, nil
}

// Close stops everything.
func (s *Testbed) Close() error {
	s.Temporal.Close()
	// A connection that broke when a test killed the database returns an error when it is closed, which is harmless.
	_ = s.Store.Close()
	_ = s.DB.Close()
	return s.Stack.Down()
}

// buildAll builds the product with crash points, and the local stack, whose path it returns. Both are kept between runs, because
// linking the Temporal server takes longer than most scenarios, and packages that are tested at once build them once.
func (s *Testbed) buildAll(root string) (self string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	kept := filepath.Join(root, "bin", "e2e")
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(kept, "lock"))
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	s.Product, self = filepath.Join(kept, "kivuko"), filepath.Join(kept, "kivuko-dev")
	for _, b := range []struct {
		name, dir, out string
		flags          []string
	}{{"build of the product", root, s.Product, []string{"-tags", "crash"}}, {"build of the local stack", filepath.Join(root, "dev"), self, nil}} {
		began := time.Now()
		if err := Build(ctx, b.dir, b.out, b.flags...); err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(s.Said, "%-34s %5.1f s\n", b.name, time.Since(began).Seconds())
	}
	return self, nil
}

// Build builds a program, without the tables of debuggers, which take half of the time of linking.
func Build(ctx context.Context, dir, out string, flags ...string) error {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-buildvcs=false", "-ldflags=-w"}, flags...), "-o", out, ".")...)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", dir, err, said)
	}
	return nil
}

// fill starts the stack, seeds it and opens the clients.
func (s *Testbed) fill(ctx context.Context) error {
	for _, part := range [][]stack.Step{stack.Infrastructure(), stack.Prepare(), stack.Product(), stack.Notices()} {
		if err := s.Stack.Up(ctx, part); err != nil {
			return err
		}
	}
	if err := demo.Seed(ctx, s.Seed()); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	if err := s.Seed().LiftCustomers(ctx); err != nil { // one customer opens all orders
		return fmt.Errorf("limits: %w", err)
	}
	var err error
	if s.Store, err = store.Open(ctx, s.Stack.ProductDatabase(), store.Options{MaxConns: 4}); err != nil {
		return err
	}
	if s.DB, err = sql.Open("postgres", s.Stack.ProductDatabase()); err != nil {
		return err
	}
	s.DB.SetMaxOpenConns(4)
	if err := s.hurry(ctx); err != nil {
		return err
	}
	if s.Temporal, err = stack.Dial(s.Stack.Tools(), "tests"); err != nil {
		return err
	}
	// A run on the half-hour would find the receipts that a test expects another flow to find. Tests trigger it.
	return s.Temporal.ScheduleClient().GetHandle(ctx, Statement).Pause(ctx, client.SchedulePauseOptions{Note: "tests trigger it"})
}

// Statement is the schedule that reads the operator's statement. It is paused.
const Statement = "reconcile-payments"

// Matching is the schedule that matches the lines of statements with what explains them.
const Matching = "match-statements"

// hurry shortens waits of sales that are meant for operators, and keeps the pools of escrow addresses small.
func (s *Testbed) hurry(ctx context.Context) error {
	_, err := s.DB.ExecContext(ctx, `UPDATE refund_policy SET cool_off_seconds = 1`)
	if err != nil {
		return err
	}
	_, err = s.DB.ExecContext(ctx, `ALTER TABLE escrow_policy DISABLE TRIGGER escrow_policy_guarded; UPDATE escrow_policy SET keep_free = 5, rest_seconds = 600;
		ALTER TABLE escrow_policy ENABLE TRIGGER escrow_policy_guarded`) // two officers would have to agree
	return err
}

// Seed returns the stack's addresses for the demo.
func (s *Testbed) Seed() demo.Stack {
	d := demo.Stack{
		API: s.API(), Momo: s.Momo(), Messages: s.Messages(), DatabaseURL: s.Stack.ProductDatabase(), AdminEmail: stack.AdminEmail, AdminPass: stack.AdminPassword,
		Say: s.Stack.Supervisor.Say,
	}
	for control, n := range map[*string]exchange.Network{&d.TronControl: exchange.Tron, &d.EthereumControl: exchange.Ethereum, &d.SolanaControl: exchange.Solana} {
		if address, runs := s.Stack.Control(n); runs {
			*control = "http://" + address
		}
	}
	return d
}

// API is the address of the API.
func (s *Testbed) API() string { return "http://" + s.Stack.Addresses.API }

// Momo is the address of the operator's gateway, with its fault switches.
func (s *Testbed) Momo() string { return "http://" + s.Stack.Addresses.Momo }

// Messages is the address of the page of messages.
func (s *Testbed) Messages() string { return "http://" + s.Stack.Addresses.Messages }

// WebUI returns a client of Temporal that sends what somebody types into its Web UI: plain JSON, and no key of the product's.
func (s *Testbed) WebUI(t *testing.T) client.Client {
	t.Helper()
	overTLS, err := stack.TLS(s.Stack.Tools())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(client.Options{
		HostPort: s.Stack.Addresses.Temporal, Namespace: "kivuko", ConnectionOptions: client.ConnectionOptions{TLS: overTLS},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Transcript stores the stack's messages, which are shown when a test fails.
type Transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *Transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(b)
}

func (t *Transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
