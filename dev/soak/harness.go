package soak

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	_ "github.com/lib/pq" // the driver named "postgres"
	temporal "go.temporal.io/sdk/client"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/momo/sandbox"
	"kivuko/store"
)

// Short intervals where Kivuko only waits.
const (
	tronBlocks      = 100 * time.Millisecond
	tronPoll        = 150 * time.Millisecond
	ethereumBlocks  = 200 * time.Millisecond
	ethereumIdle    = time.Second
	solanaSlots     = 100 * time.Millisecond
	transactionLife = time.Minute
	toBump          = 5 * time.Second
	startLimit      = 5 * time.Minute
	loginLife       = 8 * time.Minute // well below that of an access token
	answerLimit     = 30 * time.Second
	// plentyOfFees is more than the networks' fees of a run.
	plentyOfFees = "ETH:1000000,TRX:1000000000,SOL:1000000"
)

// Options configure a soak.
type Options struct {
	Root    string // the checkout
	State   string // directory of data and logs; empty: a temporary one
	Product string // the product's binary
	Dev     string // kivuko-dev: Temporal, the nodes, the sandbox
	Out     io.Writer
	For     time.Duration
	Seed    uint64
	Only    Kind // of all actions; empty: of all kinds
}

// purse names the wallet of a user on a network.
type purse struct {
	email   string
	network exchange.Network
}

// harness is the running stack and the clients that use and check it.
type harness struct {
	Options
	stack    *stack.Stack
	db       *sql.DB
	store    *store.Store
	temporal temporal.Client
	nodes    []demo.Node
	// temporary is removed after the run.
	temporary string

	seed    demo.Stack
	vendor  uuid.UUID                 // opens the orders of merchants
	wallets map[purse]exchange.Wallet // custodial wallets that pay sales and swaps
	clubs   map[exchange.Network]club // wallets of several owners

	mu      sync.Mutex
	logins  map[string]*client.Client
	since   map[string]time.Time
	actions map[uuid.UUID]action // by the ids of their objects
	under   map[string]bool      // troubles of swaps that last, with what they are about
	counts  map[string]int       // of troubles, and of what happened to swaps
}

// open starts the stack and fills it with data.
func open(ctx context.Context, o Options) (_ *harness, err error) {
	w := &harness{
		Options: o, logins: map[string]*client.Client{}, since: map[string]time.Time{}, actions: map[uuid.UUID]action{},
		wallets: map[purse]exchange.Wallet{}, clubs: map[exchange.Network]club{}, under: map[string]bool{}, counts: map[string]int{},
	}
	if err := w.house(); err != nil {
		return nil, err
	}
	w.stack, err = stack.Open(stack.Options{
		Root: o.Root, State: w.State, Product: o.Product, Self: o.Dev, Out: io.Discard, AnyPorts: true, UnsafeDatabase: true, FetchPrograms: true,
		TronFlags: []string{"--interval", tronBlocks.String()}, SolanaFlags: []string{"--interval", solanaSlots.String()},
		EthereumFlags: []string{"--interval", ethereumBlocks.String(), "--idle", ethereumIdle.String()},
		MomoFlags:     []string{"--answer-delay", "200ms", "--late-delay", "-1s", "--magic-amounts=false"}, // late results are released at the end
	})
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"API_RATE_FACTOR": "100000", "TRON_POLL": tronPoll.String(), "TRON_TRANSACTION_LIFE": transactionLife.String(),
		"ETHEREUM_POLL": ethereumBlocks.String(), "SENDING_STUCK_TIMEOUT": toBump.String(), "LOG_LEVEL": "warn",
		"LIMIT_CUSTOMER_ORDERS": "100000", "LIMIT_PROMPTS_PER_PHONE": "100000", "LIMIT_CUSTOMER_TRANSFERS": "100000",
		"LIMIT_USER_FEES": plentyOfFees, "LIMIT_CUSTOMER_FEES": plentyOfFees, "LIMIT_MERCHANT_FEES": plentyOfFees, "LIMIT_HOUSE_FEES": plentyOfFees,
	} {
		w.stack.SetEnvironment(name, value)
	}
	if err := w.fill(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// house chooses the directory of the stack's data.
func (w *harness) house() (err error) {
	if w.State != "" {
		return nil
	}
	if w.State, err = os.MkdirTemp("", "kivuko-soak-"); err != nil {
		return err
	}
	w.temporary = w.State
	// The database runs as another user when we are root.
	return os.Chmod(w.State, 0o755)
}

func (w *harness) fill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := w.stack.Up(ctx, slices.Concat(stack.Infrastructure(), stack.Prepare(), stack.Product(), stack.Notices())); err != nil {
		return err
	}
	a := w.stack.Addresses
	seed := demo.Stack{
		API: "http://" + a.API, TronControl: "http://" + a.TronControl, TronGRPC: a.TronGRPC, EthereumControl: "http://" + a.EthereumControl, NoSafe: !w.stack.Safe(), Momo: "http://" + a.Momo, Messages: "http://" + a.Messages,
		DatabaseURL: w.stack.ProductDatabase(), AdminEmail: stack.AdminEmail, AdminPass: stack.AdminPassword, Say: w.stack.Supervisor.Say,
	}
	if w.stack.Solana() {
		seed.SolanaControl = "http://" + a.SolanaControl
	}
	w.seed, w.nodes = seed, seed.Nodes()
	err := demo.Seed(ctx, seed)
	if err == nil {
		err = seed.LiftCustomers(ctx)
	}
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	if w.store, err = store.Open(ctx, w.stack.ProductDatabase(), store.Options{MaxConns: 4}); err != nil {
		return err
	}
	if w.db, err = sql.Open("postgres", w.stack.ProductDatabase()); err != nil {
		return err
	}
	w.db.SetMaxOpenConns(4)
	return w.setUp(ctx)
}

func (w *harness) close() error {
	var err error
	if w.store != nil {
		err = w.store.Close()
	}
	if w.db != nil {
		err = errors.Join(err, w.db.Close())
	}
	if w.temporal != nil {
		w.temporal.Close()
	}
	err = errors.Join(err, w.stack.Down())
	if w.temporary != "" {
		err = errors.Join(err, os.RemoveAll(w.temporary))
	}
	return err
}

func (w *harness) say(format string, args ...any) { _, _ = fmt.Fprintf(w.Out, format+"\n", args...) }

// as returns a client that is logged in to an account.
func (w *harness) as(ctx context.Context, email string) (*client.Client, error) {
	password := demo.Password
	if email == stack.AdminEmail {
		password = stack.AdminPassword
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.logins[email]; c != nil && time.Since(w.since[email]) < loginLife {
		return c, nil
	}
	c, err := client.New("http://"+w.stack.Addresses.API).Login(ctx, email, password)
	if err == nil {
		w.logins[email], w.since[email] = c, time.Now()
	}
	return c, err
}

// insist calls as an app would: when there is no response, or one that asks for a retry, it repeats the request with
// the same key. It returns other refusals.
func (w *harness) insist(ctx context.Context, email string, do func(context.Context, *client.Client) error) error {
	const insisting = 3 * time.Minute
	for deadline := time.Now().Add(insisting); ; {
		call, cancel := context.WithTimeout(ctx, answerLimit)
		c, err := w.as(call, email)
		if err == nil {
			err = do(call, c)
		}
		cancel()
		problem, answered := errors.AsType[*client.Problem](err)
		final := answered && problem.Status < http.StatusInternalServerError && problem.Status != http.StatusTooManyRequests &&
			problem.Status != http.StatusRequestTimeout && problem.Code != string(exchange.CodeConflict) && problem.Code != string(exchange.CodeIdempotencyBusy)
		if err == nil || final || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// opened stores the action of an object.
func (w *harness) opened(d action) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.actions[d.id] = d
}

// actionOf returns the action that made an object.
func (w *harness) actionOf(id uuid.UUID) (action, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, known := w.actions[id]
	return d, known
}

// operator calls the sandbox's fault switches.
func (w *harness) operator(ctx context.Context, method, path string, in, out any) error {
	if in == nil {
		in = struct{}{}
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+w.stack.Addresses.Momo+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("sandbox: %s %s: %s", method, path, resp.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// books returns the operator's own books.
func (w *harness) books(ctx context.Context) (b sandbox.Books, err error) {
	err = w.operator(ctx, http.MethodGet, "/control/books", nil, &b)
	return b, err
}

// fault sets a fault of the operator: once for one number, or several times for all.
func (w *harness) fault(ctx context.Context, behaviour, op, phone string, times int) error {
	return w.operator(ctx, http.MethodPost, "/control/faults", sandbox.Fault{Behaviour: behaviour, Op: op, Phone: phone, Times: times}, nil)
}

func newKey() string { return uuid.NewString() }
