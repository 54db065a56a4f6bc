package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "github.com/lib/pq"
	"go.temporal.io/sdk/client"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// Short intervals where the product only waits.
const (
	blockInterval   = 100 * time.Millisecond
	tronPoll        = 150 * time.Millisecond
	transactionLife = time.Minute
	ethereumBlocks  = 200 * time.Millisecond
	ethereumIdle    = time.Second
	solanaSlots     = 100 * time.Millisecond
	buildTimeout    = 20 * time.Minute // the first time links the Temporal server
	startTimeout    = 5 * time.Minute
	// gas is the TRX that the vendor's wallet gets besides the seed: each new address costs some.
	gas = "100000"
	// plentyOfFees is more than the networks' fees of all tests.
	plentyOfFees = "ETH:1000000,TRX:1000000000,SOL:1000000"
)

// harness is the running stack and the clients that use and check it.
type harness struct {
	stack    *stack.Stack
	crash    string // the directory in which crash points are armed
	product  string // its binary
	coldKey  string // the file with the private half, which no process of the stack gets
	temporal client.Client
	db       *sql.DB
	store    *store.Store
	customer uuid.UUID
	vendor   uuid.UUID
	offer    uuid.UUID
	wallet   exchange.Wallet // the vendor's
	said     *transcript
	people   people

	screening *screening
}

var (
	theDir     string
	theOnce    sync.Once
	theHarness *harness
	theError   error
)

// open returns the only harness of this test binary and starts it at the first call.
func open(t *testing.T) *harness {
	t.Helper()
	if testing.Short() {
		t.Skip("the whole stack is not for -short")
	}
	theOnce.Do(func() {
		began := time.Now()
		theHarness, theError = start(theDir)
		if theError == nil {
			t.Logf("the stack was up after %s:\n%s", time.Since(began).Round(time.Second), theHarness.said)
		}
	})
	if theError != nil {
		t.Fatal(theError)
	}
	return theHarness
}

// openBeside is open for a test that changes nothing that others share: no node, no process, no rule that others meet. It
// waits until the tests that do are over, and then runs beside all others of its kind.
func openBeside(t *testing.T) *harness {
	t.Helper()
	w := open(t)
	t.Parallel()
	return w
}

func closeHarness() error {
	if theHarness == nil {
		return nil
	}
	theHarness.temporal.Close()
	defer theHarness.screening.server.Close()
	// A connection that broke when a test killed the database returns an error when it is closed, which is harmless.
	_ = theHarness.store.Close()
	_ = theHarness.db.Close()
	return theHarness.stack.Down()
}

// start builds the product with crash points, starts the stack and fills it with data.
func start(dir string) (_ *harness, err error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return nil, err
	}
	w := &harness{crash: filepath.Join(dir, "crash"), said: &transcript{}, screening: newScreening()}
	for _, name := range []string{"armed", "killed", "passed"} {
		if err := os.MkdirAll(filepath.Join(w.crash, name), 0o700); err != nil {
			return nil, err
		}
	}
	// They are kept between runs: linking the Temporal server takes longer than most scenarios.
	kept := filepath.Join(root, "bin", "e2e")
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return nil, err
	}
	product, self := filepath.Join(kept, "kivuko"), filepath.Join(kept, "kivuko-dev")
	w.product = product
	if err := w.buildAll(root, product, self); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	settings, err := copySettings(dir, root)
	if err != nil {
		return nil, err
	}
	w.stack, err = stack.Open(stack.Options{
		Root: root, State: filepath.Join(dir, "state"), Product: product, Self: self, Out: w.said, AnyPorts: true, UnsafeDatabase: true,
		DynamicConfig: settings, StaffLogin: true,
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
	for name, value := range map[string]string{
		"API_RATE_FACTOR": "1000", "TRON_POLL": tronPoll.String(), "TRON_TRANSACTION_LIFE": transactionLife.String(),
		"ETHEREUM_POLL": ethereumBlocks.String(), "SENDING_STUCK_TIMEOUT": timeoutToBump.String(),
		"SCREENING_URL": w.screening.server.URL, "CRASH_DIR": w.crash, "LOG_LEVEL": "debug",
		"LIMIT_CUSTOMER_ORDERS": "100000", "LIMIT_PROMPTS_PER_PHONE": "100000", "LIMIT_CUSTOMER_TRANSFERS": "100000", // one customer opens all orders
		"LIMIT_USER_FEES": plentyOfFees, "LIMIT_CUSTOMER_FEES": plentyOfFees, "LIMIT_MERCHANT_FEES": plentyOfFees, "LIMIT_HOUSE_FEES": plentyOfFees,
	} {
		w.stack.SetEnvironment(name, value)
	}
	err = errors.Join(w.makeColdKey(ctx, dir, product), w.fill(ctx))
	if err == nil {
		// A run on the half-hour would find the receipts that a test expects another flow to find. Tests trigger it.
		err = w.temporal.ScheduleClient().GetHandle(ctx, readStatement).Pause(ctx, client.SchedulePauseOptions{Note: "tests trigger it"})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w\n%s", err, w.said), w.stack.Down())
	}
	return w, nil
}

// buildAll builds the product with crash points, and the local stack.
func (w *harness) buildAll(root, product, self string) error {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	for _, b := range []struct {
		name, dir, out string
		flags          []string
	}{{"build of the product", root, product, []string{"-tags", "crash"}}, {"build of the local stack", filepath.Join(root, "dev"), self, nil}} {
		began := time.Now()
		if err := build(ctx, b.dir, b.out, b.flags...); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w.said, "%-34s %5.1f s\n", b.name, time.Since(began).Seconds())
	}
	return nil
}

// copySettings makes a file of Temporal's settings that a test may change.
func copySettings(dir, root string) (string, error) {
	content, err := os.ReadFile(filepath.Join(root, "docker", "dynamicconfig.yaml"))
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "dynamicconfig.yaml")
	return file, os.WriteFile(file, content, 0o600)
}

// build links without the tables of debuggers, which takes half of the time.
func build(ctx context.Context, dir, out string, flags ...string) error {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-buildvcs=false", "-ldflags=-w"}, flags...), "-o", out, ".")...)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", dir, err, said)
	}
	return nil
}

// fill starts the stack, seeds it and reads the objects that the tests use.
func (w *harness) fill(ctx context.Context) error {
	for _, part := range [][]stack.Step{stack.Infrastructure(), stack.Prepare(), stack.Product()} {
		if err := w.stack.Up(ctx, part); err != nil {
			return err
		}
	}
	if err := demo.Seed(ctx, w.seed()); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	if err := w.seed().LiftCustomers(ctx); err != nil { // one customer opens all orders
		return fmt.Errorf("limits: %w", err)
	}
	var err error
	if w.store, err = store.Open(ctx, w.stack.ProductDatabase(), store.Options{MaxConns: 4}); err != nil {
		return err
	}
	if w.db, err = sql.Open("postgres", w.stack.ProductDatabase()); err != nil {
		return err
	}
	w.db.SetMaxOpenConns(4)
	if err := w.hurry(ctx); err != nil {
		return err
	}
	if w.temporal, err = w.dial(); err != nil {
		return err
	}
	return w.meet(ctx)
}

// hurry shortens waits of sales that are meant for operators, and keeps the pools of escrow addresses small.
func (w *harness) hurry(ctx context.Context) error {
	_, err := w.db.ExecContext(ctx, `UPDATE refund_policy SET cool_off_seconds = 1`)
	if err != nil {
		return err
	}
	_, err = w.db.ExecContext(ctx, `ALTER TABLE escrow_policy DISABLE TRIGGER escrow_policy_guarded; UPDATE escrow_policy SET keep_free = 5, rest_seconds = 600;
		ALTER TABLE escrow_policy ENABLE TRIGGER escrow_policy_guarded`) // two officers would have to agree
	return err
}

// seed returns the stack's addresses for the demo.
func (w *harness) seed() demo.Stack {
	d := demo.Stack{
		API: w.api(), TronControl: "http://" + w.stack.Addresses.TronControl, EthereumControl: "http://" + w.stack.Addresses.EthereumControl,
		Momo: w.momo(), Messages: "http://" + w.stack.Addresses.Messages, DatabaseURL: w.stack.ProductDatabase(), AdminEmail: stack.AdminEmail, AdminPass: stack.AdminPassword,
		Say: w.stack.Supervisor.Say,
	}
	if w.stack.Solana() {
		d.SolanaControl = "http://" + w.stack.Addresses.SolanaControl
	}
	return d
}

// dial returns a client of Temporal with the product's keys.
func (w *harness) dial() (client.Client, error) { return stack.Dial(w.stack.Tools(), "e2e") }

// meet finds the users of the seed, the vendor's wallet and its offer, and tops up the wallet's gas.
func (w *harness) meet(ctx context.Context) error {
	customer, err := w.store.UserByEmail(ctx, demo.CustomerEmail)
	if err != nil {
		return err
	}
	vendor, err := w.store.UserByEmail(ctx, demo.VendorEmail)
	if err != nil {
		return err
	}
	w.customer, w.vendor = customer.ID, vendor.ID
	if w.wallet, err = w.store.DefaultWallet(ctx, vendor.ID, exchange.Tron); err != nil {
		return err
	}
	offers, _, err := w.store.ListOffers(ctx, store.Everything(),
		store.OfferFilter{VendorID: vendor.ID, Type: exchange.OfferSell, Network: exchange.Tron, Status: exchange.OfferActive}, store.Page{Number: 1, Size: 1})
	if err != nil {
		return err
	}
	if len(offers) == 0 {
		return errors.New("the seed made no offer of " + demo.VendorEmail)
	}
	w.offer = offers[0].ID
	return w.deposit(ctx, money.Must(money.TRX, gas))
}

// deposit sends coins to the vendor's wallet and waits until the product has booked them.
func (w *harness) deposit(ctx context.Context, m money.Amount) error {
	held, err := demo.Held(ctx, w.store, w.wallet, m.Asset())
	if err != nil || held.Cmp(m) >= 0 { // there from an earlier run on the same state directory
		return err
	}
	in := map[string]any{"address": w.wallet.Address, "token": m.Asset(), "amount": m.Units().String(), "mine": true}
	if err := w.control(ctx, "POST", "/fund", in, nil); err != nil {
		return err
	}
	if err := demo.Booked(ctx, w.store, w.wallet, held.Add(m)); err != nil {
		return err
	}
	return demo.ForFees(ctx, w.store, w.wallet)
}

func (w *harness) api() string { return "http://" + w.stack.Addresses.API }

// transcript stores the stack's messages, which are shown when a test fails.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(b)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

var _ io.Writer = (*transcript)(nil)
