package workflows_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// counting is a network whose wallets agree with the ledger, with some exceptions, and the rows of its runs.
type counting struct {
	mu       sync.Mutex
	wallets  int
	off      int // wallets that differ
	networks []exchange.Network
	runs     []exchange.Reconciliation
	reports  map[time.Time]int
	fault    func(call string) error
}

func (c *counting) called(call string) error {
	if c.fault == nil {
		return nil
	}
	return c.fault(call)
}

func walletNumber(n int) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	return id
}

func (c *counting) ReconciledNetworks(context.Context) ([]exchange.Network, error) {
	return c.networks, c.called("ReconciledNetworks")
}

func (c *counting) BeginReconciliation(_ context.Context, id uuid.UUID, n exchange.Network) (exchange.Reconciliation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.runs {
		if r.ID == id {
			return r, nil
		}
	}
	r := exchange.Reconciliation{ID: id, Network: n, Status: exchange.ReconciliationRunning}
	c.runs = append(c.runs, r)
	return r, c.called("BeginReconciliation")
}

func (c *counting) at(id uuid.UUID) int {
	return slices.IndexFunc(c.runs, func(r exchange.Reconciliation) bool { return r.ID == id })
}

func (c *counting) FinishReconciliation(_ context.Context, id uuid.UUID, to exchange.ReconciliationStatus, detail string) (exchange.Reconciliation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.runs[c.at(id)]
	if r.Status == exchange.ReconciliationRunning {
		r.Status, r.Detail = to, detail
	}
	return *r, c.called("FinishReconciliation")
}

func (c *counting) OpenDifferences(context.Context, exchange.Network) (int, error) { return c.off, nil }

func (c *counting) WriteReserves(_ context.Context, day time.Time) ([]exchange.ReserveLine, error) {
	c.reports[day]++
	usdt := func(s string) money.Amount { return money.Must(money.USDT, s) }
	return []exchange.ReserveLine{{Asset: money.USDT, Owed: usdt("7"), Custody: usdt("7"), Discrepancy: usdt("-1"), Float: usdt("0")}}, nil
}

func (c *counting) Reconciliation(_ context.Context, id uuid.UUID) (exchange.Reconciliation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[c.at(id)], nil
}

func (c *counting) WalletsAfter(_ context.Context, _ exchange.Network, after uuid.UUID, limit int) ([]exchange.Wallet, error) {
	var all []exchange.Wallet
	for n := int(binary.BigEndian.Uint32(after[12:])) + 1; n <= c.wallets && len(all) < limit; n++ {
		all = append(all, exchange.Wallet{ID: walletNumber(n), Address: fmt.Sprint(n)})
	}
	return all, nil
}

func (c *counting) DepositCursor(context.Context, exchange.Network) (exchange.DepositCursor, bool, error) {
	return exchange.DepositCursor{}, true, nil
}

func (c *counting) CompareReadings(_ context.Context, _ exchange.Network, readings []exchange.WalletReading) ([]exchange.Comparison, error) {
	all := make([]exchange.Comparison, len(readings))
	for i, r := range readings {
		all[i] = exchange.Comparison{WalletReading: r, Ledger: money.Zero(money.USDT), Fees: money.Zero(money.USDT)}
	}
	return all, nil
}

func (c *counting) RecordComparisons(_ context.Context, b exchange.ReconciledBatch) (exchange.Reconciliation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.runs[c.at(b.RunID)]
	if r.Status != exchange.ReconciliationRunning || r.Cursor != b.After {
		return *r, nil
	}
	r.Cursor, r.Compared = b.Last, r.Compared+len(b.Comparisons)
	for _, one := range b.Comparisons {
		if one.Differs() {
			r.Differences++
		}
	}
	return *r, c.called("RecordComparisons") // written, but the response is lost
}

func (c *counting) Network() exchange.Network { return exchange.Tron }

func (c *counting) Supports(a money.Asset) error {
	if a != money.USDT {
		return errors.New("not here")
	}
	return nil
}

func (c *counting) Balance(_ context.Context, address string, a money.Asset) (chain.Balance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var n int
	if _, err := fmt.Sscan(address, &n); err != nil {
		return chain.Balance{}, err
	}
	m := money.Zero(a)
	if n <= c.off {
		m = money.Must(a, "1")
	}
	return chain.Balance{Amount: m}, c.called("Balance")
}

func newCounting(wallets, off int) (*testsuite.TestWorkflowEnvironment, *counting) {
	env := newEnvironment(nil)
	env.SetStartTime(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))
	c := &counting{wallets: wallets, off: off, networks: []exchange.Network{exchange.Tron}, reports: map[time.Time]int{}}
	env.RegisterWorkflow(workflows.Reconcile)
	env.RegisterWorkflow(workflows.ReconcileNetwork)
	env.RegisterActivity(&activities.Reconciliation{Store: c})
	env.RegisterActivity(&activities.Comparing{Store: c, Client: c})
	return env, c
}

func compareNetwork(env *testsuite.TestWorkflowEnvironment, in workflows.ReconcileNetworkInput) (activities.Reconciled, error) {
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.ReconciliationID(in.Network), TaskQueue: workflows.QueueFlows})
	env.ExecuteWorkflow(workflows.ReconcileNetwork, in)
	var done activities.Reconciled
	if err := env.GetWorkflowError(); err != nil {
		return done, err
	}
	return done, env.GetWorkflowResult(&done)
}

func TestEveryWalletIsComparedOnce(t *testing.T) {
	var away atomic.Bool
	for name, fault := range map[string]func(string) error{
		"well": nil, "away at the beginning": once("BeginReconciliation"), "away while reading": func(call string) error {
			if call == "Balance" && !away.Swap(true) {
				return chain.Errorf(chain.ReasonUnavailable, "no route")
			}
			return nil
		},
		"a batch whose response is lost": once("RecordComparisons"), "away at the end": once("FinishReconciliation"),
	} {
		t.Run(name, func(t *testing.T) {
			env, c := newCounting(120, 2)
			c.fault = fault
			done, err := compareNetwork(env, workflows.ReconcileNetworkInput{Network: exchange.Tron})
			if err != nil || done.Status != exchange.ReconciliationCompleted || done.Compared != 120 || done.Differences != 2 || done.Standing != 2 {
				t.Errorf("%+v, %v", done, err)
			}
			if len(c.runs) != 1 {
				t.Errorf("%d runs", len(c.runs))
			}
		})
	}
}

// A network that can't be read makes its run fail in time, without a result for the wallets.
func TestUnreadableNetworksFailTheirRun(t *testing.T) {
	env, c := newCounting(10, 0)
	tries := 0
	c.fault = func(call string) error {
		if call == "Balance" {
			tries++
			return chain.Errorf(chain.ReasonUnavailable, "no route")
		}
		return nil
	}
	done, err := compareNetwork(env, workflows.ReconcileNetworkInput{Network: exchange.Tron})
	if err != nil || done.Status != exchange.ReconciliationFailed || c.runs[0].Detail != "unavailable" || done.Compared != 0 {
		t.Errorf("%+v (%s), %v", done, c.runs[0].Detail, err)
	}
	if tries < 2 {
		t.Errorf("it was tried %d times", tries)
	}
}

// Who controls the shared wallets is read before anything else, also when then nothing can be compared; once for all runs of the flow.
func TestOwnersAreReadFirst(t *testing.T) {
	for name, c := range map[string]struct {
		goesOn bool
		want   int
	}{"a new comparison": {false, 1}, "one that goes on": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			env, counted := newCounting(10, 0)
			in := workflows.ReconcileNetworkInput{Network: exchange.Tron}
			if c.goesOn {
				run, err := counted.BeginReconciliation(t.Context(), uuid.New(), in.Network)
				if err != nil {
					t.Fatal(err)
				}
				in.RunID = run.ID
			}
			looks, reads := 0, 0
			env.RegisterActivityWithOptions(func(context.Context) (activities.MultisigsChecked, error) {
				if looks++; reads > 0 {
					t.Error("the owners are read after the wallets")
				}
				return activities.MultisigsChecked{}, nil
			}, activity.RegisterOptions{Name: "CheckMultisigs"})
			counted.fault = func(call string) error {
				if call == "Balance" {
					reads++
					return chain.Errorf(chain.ReasonUnavailable, "no route")
				}
				return nil
			}
			done, err := compareNetwork(env, in)
			if err != nil || done.Status != exchange.ReconciliationFailed || looks != c.want {
				t.Errorf("%+v after %d looks, %v", done, looks, err)
			}
		})
	}
}

// A network with very many wallets is compared by one run of rows through several runs of the flow.
func TestLongComparisonsGoOnAsNewFlows(t *testing.T) {
	const wallets = 500*50 + 60
	env, c := newCounting(wallets, 0)
	in := workflows.ReconcileNetworkInput{Network: exchange.Tron}
	_, err := compareNetwork(env, in)
	next, ok := errors.AsType[*workflow.ContinueAsNewError](err)
	if !ok || len(c.runs) != 1 || c.runs[0].Status != exchange.ReconciliationRunning {
		t.Fatalf("%v with %+v", err, c.runs)
	}
	if next.WorkflowType.Name != workflows.TypeReconcileNetwork {
		t.Errorf("it continues as %s", next.WorkflowType.Name)
	}
	in.RunID = c.runs[0].ID
	second, rest := newCounting(wallets, 0)
	rest.runs = c.runs
	done, err := compareNetwork(second, in)
	if err != nil || done.Compared != wallets || len(rest.runs) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}

// The schedule starts one comparison of a network, and does not touch one that is still running.
func TestScheduledComparisonsDoNotMeet(t *testing.T) {
	env, c := newCounting(3, 0)
	c.networks, c.fault = []exchange.Network{exchange.Tron, exchange.Tron}, once("ReconciledNetworks")
	env.ExecuteWorkflow(workflows.Reconcile)
	var out workflows.ReconcileStarted
	if err := errors.Join(env.GetWorkflowError(), env.GetWorkflowResult(&out)); err != nil {
		t.Fatal(err)
	}
	if len(out.Started) != 1 || len(out.Running) != 1 || out.Running[0] != exchange.Tron {
		t.Errorf("started %+v", out)
	}
}

func TestReservesAreReportedForTheDay(t *testing.T) {
	env, c := newCounting(0, 0)
	env.ExecuteWorkflow(workflows.ReserveReport)
	var out activities.ReservesWritten
	if err := errors.Join(env.GetWorkflowError(), env.GetWorkflowResult(&out)); err != nil {
		t.Fatal(err)
	}
	if c.reports[time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)] != 1 || len(out.Short) != 1 || out.Short[0] != money.USDT {
		t.Errorf("reported %+v for %+v", out, c.reports)
	}
}
