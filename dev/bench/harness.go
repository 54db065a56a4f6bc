package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/dev/supervisor"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// Intervals and amounts.
const (
	blockInterval = 20 * time.Millisecond
	finalBlocks   = 19 // of 27 block producers, TRON's rule for a solid block
	// finality is the pause before the delivery's second check: long enough that this check finds the
	// transaction final.
	finality = (finalBlocks + 4) * blockInterval

	namespace   = "kivuko"
	processBare = "bare-worker"
	startLimit  = 5 * time.Minute

	vendorUSDT = "1000000"
	vendorTRX  = "10000000"
	// plentyOfFees is more than the networks' fees of a run.
	plentyOfFees = "ETH:1000000,TRX:1000000000,SOL:1000000"
	offerUSDT    = "900000"
	buyUSDT      = "1"
	firstPhone   = 254_730_000_000
)

// Options configure a benchmark.
type Options struct {
	Root    string   // the checkout
	State   string   // directory of data and logs; empty: a temporary one
	Product string   // the product's binary
	Dev     string   // kivuko-dev: Temporal, the TRON node, the sandbox
	Self    string   // this program: the worker of the bare flows
	Env     []string // of the Go benchmarks of the product
	Out     io.Writer
	Quick   bool // one short round of everything, as a test of the benchmark
	Only    []string
}

// harness is the running stack and its load.
type harness struct {
	Options
	stack    *stack.Stack
	temporal temporal.Client
	store    *store.Store
	customer *client.Client
	offer    uuid.UUID
	phones   atomic.Int64
	// usual: all networks with their usual blocks, and payers who take their time, as `make run` has them.
	usual bool
}

// open starts the database, which is enough for some parts.
func open(ctx context.Context, o Options, usual bool) (_ *harness, err error) {
	w := &harness{Options: o, usual: usual}
	options := stack.Options{
		Root: o.Root, State: o.State, Product: o.Product, Self: o.Dev, Out: o.Out, AnyPorts: true, MomoFlags: []string{"--magic-amounts=false"}, FetchPrograms: usual,
	}
	if !usual {
		options.TronFlags = []string{"--interval", blockInterval.String()}
		options.MomoFlags = append(options.MomoFlags, "--answer-delay", "0s")
		options.Without = []exchange.Network{exchange.Ethereum, exchange.Solana} // the measured orders are on TRON
	}
	if w.stack, err = stack.Open(options); err != nil {
		return nil, err
	}
	if err := w.start(ctx, stack.Infrastructure()[:1]); err != nil { // PostgreSQL
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *harness) start(ctx context.Context, steps ...[]stack.Step) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return w.stack.Up(ctx, slices.Concat(steps...))
}

// ready starts the rest of the stack for the first part that needs it.
func (w *harness) ready(ctx context.Context, p part) error {
	if !p.stack || w.store != nil {
		return nil
	}
	return w.begin(ctx)
}

// begin starts the rest of the stack, seeds it and lifts the rates.
func (w *harness) begin(ctx context.Context) error {
	for name, value := range map[string]string{
		"API_RATE_FACTOR": "100000", "LOG_LEVEL": "warn",
		"LIMIT_CUSTOMER_ORDERS": "1000000", "LIMIT_MERCHANT_TRANSFERS": "1000000", "LIMIT_PROMPTS_PER_PHONE": "1000000", // one customer opens all orders
		"LIMIT_CUSTOMER_FEES": plentyOfFees, "LIMIT_MERCHANT_FEES": plentyOfFees, "LIMIT_HOUSE_FEES": plentyOfFees,
	} {
		w.stack.SetEnvironment(name, value)
	}
	if !w.usual {
		w.stack.SetEnvironment("TRON_POLL", finality.String())
	}
	if err := w.start(ctx, stack.Infrastructure()[1:], stack.Prepare(), stack.Product()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return w.fill(ctx)
}

func (w *harness) close() error {
	if w.temporal != nil {
		w.temporal.Close()
	}
	var err error
	if w.store != nil {
		err = w.store.Close()
	}
	return errors.Join(err, w.stack.Down())
}

func (w *harness) fill(ctx context.Context) error {
	seed := demo.Stack{
		API: w.api(), TronControl: "http://" + w.stack.Addresses.TronControl, Messages: "http://" + w.stack.Addresses.Messages, DatabaseURL: w.stack.ProductDatabase(),
		AdminEmail: stack.AdminEmail, AdminPass: stack.AdminPassword, Say: w.stack.Supervisor.Say,
	}
	err := demo.Seed(ctx, seed)
	if err == nil {
		err = seed.LiftCustomers(ctx)
	}
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	if w.store, err = store.Open(ctx, w.stack.ProductDatabase(), store.Options{MaxConns: 2}); err != nil {
		return err
	}
	if w.temporal, err = stack.Dial(w.stack.Tools(), "bench"); err != nil {
		return err
	}
	if err := w.liftRates(ctx); err != nil {
		return fmt.Errorf("task queue rates: %w", err)
	}
	if _, err := w.stack.Supervisor.Start(ctx, supervisor.Spec{Name: processBare, Path: w.Self, Args: []string{"bare-worker"}, Env: w.stack.ProductEnvironment(stack.ProcessAPI)}); err != nil {
		return err
	}
	return w.supply(ctx)
}

// liftRates removes the rate limits of the task queues, which protect the operator and the nodes.
func (w *harness) liftRates(ctx context.Context) error {
	const plenty = 100_000
	for _, queue := range w.stack.Served() {
		_, err := w.temporal.WorkflowService().UpdateTaskQueueConfig(ctx, &workflowservice.UpdateTaskQueueConfigRequest{
			Namespace: namespace, Identity: "bench", TaskQueue: queue, TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY,
			UpdateQueueRateLimit: &workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate{
				RateLimit: &taskqueuepb.RateLimit{RequestsPerSecond: plenty}, Reason: "benchmark",
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// supply gives a vendor enough coins for the whole run and publishes an offer of them.
func (w *harness) supply(ctx context.Context) error {
	vendor, err := w.store.UserByEmail(ctx, demo.VendorEmail)
	if err != nil {
		return err
	}
	wallet, err := w.store.DefaultWallet(ctx, vendor.ID, exchange.Tron)
	if err != nil {
		return err
	}
	for _, coins := range []money.Amount{money.Must(money.TRX, vendorTRX), money.Must(money.USDT, vendorUSDT)} {
		if err := w.deposit(ctx, wallet, coins); err != nil {
			return fmt.Errorf("deposit of %s %s: %w", coins, coins.Asset(), err)
		}
	}
	c, err := client.New(w.api()).Login(ctx, demo.VendorEmail, demo.Password)
	if err != nil {
		return err
	}
	in := map[string]any{
		"offer_type": "SELL", "asset": "USDT", "network": "tron", "usdt_amount": offerUSDT, "rate": "129.355",
		"min_order": "1", "max_order": "1000", "description": "for the benchmark",
	}
	var made struct {
		ID uuid.UUID `json:"id"`
	}
	if err := c.Post(ctx, "/api/v1/auth/offers", "bench-offer", in, &made); err != nil {
		return fmt.Errorf("offer: %w", err)
	}
	w.offer = made.ID
	return c.Post(ctx, "/api/v1/auth/offers/"+made.ID.String()+"/publish", "bench-publish", nil, nil)
}

func (w *harness) deposit(ctx context.Context, wallet exchange.Wallet, coins money.Amount) error {
	held, err := demo.Held(ctx, w.store, wallet, coins.Asset())
	if err != nil {
		return err
	}
	in := map[string]any{"address": wallet.Address, "token": coins.Asset(), "amount": coins.Units().String(), "mine": true}
	if err := post(ctx, "http://"+w.stack.Addresses.TronControl+"/fund", in); err != nil {
		return err
	}
	if err := demo.Booked(ctx, w.store, wallet, held.Add(coins)); err != nil {
		return err
	}
	return demo.ForFees(ctx, w.store, wallet)
}

// post sends a command to a development endpoint.
func post(ctx context.Context, url string, in any) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end below
	said, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s answers %d: %s", url, resp.StatusCode, said)
	}
	return err
}

func (w *harness) api() string { return "http://" + w.stack.Addresses.API }

// login renews the customer's token, which expires before the benchmark ends.
func (w *harness) login(ctx context.Context) (err error) {
	w.customer, err = client.New(w.api()).Login(ctx, demo.CustomerEmail, demo.Password)
	return err
}

// openOrder opens an order as an app does. Each has a different payer, because the operator serves one prompt
// per phone at a time.
func (w *harness) openOrder(ctx context.Context) (uuid.UUID, error) {
	in := map[string]any{
		"offer_id": w.offer, "crypto_amount": buyUSDT,
		"payment_phone_number": fmt.Sprintf("+%d", firstPhone+w.phones.Add(1)),
	}
	var made struct {
		ID uuid.UUID `json:"id"`
	}
	err := w.customer.Post(ctx, "/api/v1/auth/orders", uuid.NewString(), in, &made)
	return made.ID, err
}

// stateDir makes a directory that the database's own user can reach.
func stateDir() (string, error) {
	dir, err := os.MkdirTemp("", "kivuko-bench-")
	if err != nil {
		return "", err
	}
	const open = 0o755
	return dir, os.Chmod(dir, open)
}
