package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"kivuko/dev/client"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// recovery is how long a trial may take to its end: Temporal learns of a dead process by its time limits, of
// up to two minutes.
const recovery = 5 * time.Minute

// trial is something that a process works at while it kills itself at one point, once.
type trial struct {
	point   string // "before:Broadcast"
	worker  string // the queue whose process dies
	tale    tale
	reached bool // the process has died there

	told chan error // the answer to a request that dies with the process, where the tale has one
	// What it is about: one of these.
	order    order
	transfer sent
	deposit  exchange.Wallet
	// Of a transfer.
	address string
	amount  money.Amount
	payload json.RawMessage // what is to be signed for a cold wallet
}

// tale is what happens in a trial, crash or no crash.
type tale interface {
	// play brings the process to its point, which it arms when nobody else can come there first.
	play(t *testing.T, w *world, tr *trial, arm func())
	// judge waits for the end, with what a person has to do for it, and compares it with what the operator
	// and the chains recorded.
	judge(t *testing.T, w *world, tr *trial)
}

// both are the trials of a side effect: the process dies before it in one, after it in the other.
func both(worker, name string, before, after tale) []*trial {
	return []*trial{{point: "before:" + name, worker: worker, tale: before}, {point: "after:" + name, worker: worker, tale: after}}
}

// lanes are all trials that there are. Those of a lane go one after the other, the lanes side by side: they play on
// different chains, or on none.
func lanes() map[string][]*trial {
	return map[string][]*trial{
		"tron": among(slices.Concat(tronTrials(), offRampTrials()), floatTrials()), "ethereum": slices.Concat(solanaTrials(), ethereumTrials()), "webhooks": hookTrials(),
	}
}

func trials() []*trial { return slices.Concat(slices.Collect(maps.Values(lanes()))...) }

// crashesVariable asks for the trials whose points match a regular expression, or for "all", which `make test-crash`
// does. They take several times as long as all other tests of this package.
const crashesVariable = "KIVUKO_E2E_CRASHES"

// brief are the trials of every run: one death of each kind of process, where it is the least convenient.
var brief = []string{
	"after:OpenOrder", "after:SubmitCollection", "after:SaveSignedAttempt", "after:Broadcast", "after:RecordFinalBlock", "before:RecordWebhook",
}

// TestACrashOfEachProcess is what TestCrashPoints does, with a few trials.
func TestACrashOfEachProcess(t *testing.T) {
	if os.Getenv(crashesVariable) != "" {
		t.Skip("TestCrashPoints has these trials too")
	}
	crash(t, open(t), only(func(tr *trial) bool { return slices.Contains(brief, tr.point) }))
}

// only are the lanes with some of their trials.
func only(which func(*trial) bool) map[string][]*trial {
	some := lanes()
	for name, lane := range some {
		some[name] = slices.DeleteFunc(lane, func(tr *trial) bool { return !which(tr) })
	}
	return some
}

// TestCrashPoints kills the process in charge before and after every side effect. However that falls, everything
// ends as if nothing had happened: collected once, paid out once or not at all, and booked so.
func TestCrashPoints(t *testing.T) {
	which := os.Getenv(crashesVariable)
	if which == "" {
		t.Skip("`make test-crash` runs all trials, TestACrashOfEachProcess some")
	}
	points, err := regexp.Compile(strings.TrimPrefix(which, "all"))
	if err != nil {
		t.Fatalf("%s: %v", crashesVariable, err)
	}
	crash(t, open(t), only(func(tr *trial) bool { return points.MatchString(tr.point) }))
}

// crash plays trials, and judges them when all processes have died and are back. What was not reached is told at the
// end too, in one line: of a long output often only the end is kept.
func crash(t *testing.T, w *world, lanes map[string][]*trial) {
	t.Helper()
	if !w.stack.Solana() {
		t.Log("what only happens on Solana is left out: its token programs could not be had")
		for name, lane := range lanes {
			lanes[name] = slices.DeleteFunc(lane, func(tr *trial) bool { return strings.HasSuffix(tr.worker, string(exchange.Solana)) })
		}
	}
	t.Run("reach", func(t *testing.T) {
		w.mend(t) // when all lanes are through: one may still play what another one's end would heal
		heal(t, w.ethereum())
		for name, lane := range lanes {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w.prepare(t, lane)
				for _, tr := range lane {
					t.Run(tr.name(), func(t *testing.T) { w.crashAt(t, tr) })
				}
			})
		}
	})
	// Other tests run while Temporal learns of the dead.
	t.Parallel()
	all := slices.Concat(slices.Collect(maps.Values(lanes))...)
	var missed, failed []string
	for _, tr := range all {
		if !tr.reached {
			missed = append(missed, tr.point)
		} else if !t.Run(tr.name(), func(t *testing.T) { tr.tale.judge(t, w, tr) }) {
			failed = append(failed, tr.point)
		}
	}
	w.invariants(t)
	w.agree(t)
	w.booksAgree(t)
	if len(missed)+len(failed) > 0 {
		t.Errorf("of %d points: not reached, or not gone on from: %v; did not end as they should: %v", len(all), missed, failed)
	}
}

// name is the trial's as a test.
func (tr *trial) name() string { return strings.ReplaceAll(tr.point, ":", " ") }

// prepare opens, all at once, what the trials of a lane begin with.
func (w *world) prepare(t *testing.T, lane []*trial) {
	t.Helper()
	var reverted []*trial
	for _, tr := range lane {
		if o, ok := tr.tale.(orderTale); ok && o.verb != "" && !o.late {
			reverted = append(reverted, tr)
		}
	}
	if len(reverted) > 0 {
		w.revert(t, reverted)
	}
}

// crashAt brings a process to its point, and has it run again when it died there.
func (w *world) crashAt(t *testing.T, tr *trial) {
	t.Helper()
	armed, victim := filepath.Join(w.crash, tr.point), 0
	tr.tale.play(t, w, tr, func() {
		victim = w.stack.Supervisor.Child(stack.ProcessWorker(tr.worker)).PID()
		w.arm(t, tr.point, tr.worker)
	})
	err := await(t.Context(), recovery, func() error {
		if _, err := os.Stat(armed); !errors.Is(err, fs.ErrNotExist) {
			return errors.New("it was not reached")
		}
		return nil
	})
	if err != nil {
		_ = os.Remove(armed)
		t.Fatalf("point %s: %v; %s", tr.point, err, w.standOf(tr))
	}
	w.revive(t, tr, victim)
	if after, ok := tr.tale.(interface {
		restarted(*testing.T, *world, *trial)
	}); ok {
		after.restarted(t, w, tr)
	}
	if tr.worker == workflows.QueueMomo {
		w.retaken(t)
	}
	tr.reached = true
}

// standOf says where the order or transfer of a trial stands whose point was not reached.
func (w *world) standOf(tr *trial) string {
	const read = `SELECT coalesce((SELECT 'its order is ' || status || '/' || status_detail FROM orders WHERE id = $1),
		(SELECT 'its transfer is ' || status || '/' || status_detail FROM transfers WHERE id = $2), 'it has no order and no transfer')`
	var said string
	if err := w.db.QueryRowContext(context.Background(), read, tr.order.ID, tr.transfer.ID).Scan(&said); err != nil {
		return err.Error()
	}
	return said
}

// revive sees that a trial's process died, and no other, and starts it. The supervisor would restart it too, after a
// pause that grows with every death; one that it has restarted already dies once more, which is quicker than to have it
// finish what it began.
func (w *world) revive(t *testing.T, tr *trial, victim int) {
	t.Helper()
	name := stack.ProcessWorker(tr.worker)
	eventually(t, name+" has died", func() error {
		if pid := w.stack.Supervisor.Child(name).PID(); pid != 0 && pid == victim {
			return errors.New("it runs; was it another process that came to " + tr.point + "?")
		}
		return nil
	})
	w.kill(t, name, 0)
}

// arm has the process of a queue kill itself when it comes to a point next. The file appears as a whole: an empty one
// would be for any process.
func (w *world) arm(t *testing.T, point, worker string) {
	t.Helper()
	f, err := os.CreateTemp(w.crash, "arming-")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(worker)
	if err = errors.Join(err, f.Close(), os.Rename(f.Name(), filepath.Join(w.crash, point))); err != nil {
		t.Fatal(err)
	}
}

// retaken has the steps that a process of mobile money had in hand when it died be done by the next one, now: when
// Temporal has found them out by itself, one of them would come to the point of a later trial, which would die in the
// middle of something else.
func (w *world) retaken(t *testing.T) {
	t.Helper()
	for _, flow := range []string{
		workflows.TypeOnRamp, workflows.TypeOffRamp, workflows.TypeMomoPayout, workflows.TypeRefund, workflows.TypeLatePayment, workflows.TypeLatePayout,
	} {
		for _, id := range w.allRunning(t, flow) {
			w.hasten(t, id)
			eventually(t, id+" does again what it did", func() error {
				d, err := w.temporal.DescribeWorkflowExecution(t.Context(), id, "")
				if err != nil {
					return err
				}
				for _, a := range d.GetPendingActivities() {
					if a.GetAttempt() > 1 {
						return fmt.Errorf("%s is tried the time %d: %v", a.GetActivityType().GetName(), a.GetAttempt(), a.GetLastFailure().GetMessage())
					}
				}
				return nil
			})
		}
	}
}

// allRunning are the ids of the flows of a type that run.
func (w *world) allRunning(t *testing.T, flow string) (ids []string) {
	t.Helper()
	list, err := w.temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", flow),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.GetExecutions() {
		ids = append(ids, e.GetExecution().GetWorkflowId())
	}
	return ids
}

// hastenAll is hasten for all flows of a type.
func (w *world) hastenAll(t *testing.T, flow string) {
	t.Helper()
	for _, id := range w.allRunning(t, flow) {
		w.hasten(t, id)
	}
}

// hasten tells Temporal which steps of a flow were begun by processes that are dead, so that it begins them anew
// at once. Trials after which the next one needs the flow use it; the others wait for Temporal's time limits.
func (w *world) hasten(t *testing.T, flow string) {
	t.Helper()
	eventually(t, "no dead process works at "+flow, func() error {
		d, err := w.temporal.DescribeWorkflowExecution(t.Context(), flow, "")
		if err != nil {
			return err
		}
		for _, a := range d.GetPendingActivities() {
			if a.GetState() != enumspb.PENDING_ACTIVITY_STATE_STARTED || alive(a.GetLastWorkerIdentity()) {
				continue
			}
			run := d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
			dead := temporal.NewApplicationError("the process is dead", "dead")
			if err := w.temporal.CompleteActivityByID(t.Context(), "kivuko", flow, run, a.GetActivityId(), nil, dead); err != nil {
				return err
			}
			return errors.New("there was one")
		}
		return nil
	})
}

// alive tells whether the process of a worker's identity, host:pid, runs.
func alive(identity string) bool {
	var pid int
	_, err := fmt.Sscan(identity[strings.LastIndex(identity, ":")+1:], &pid)
	return err == nil && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// background sends a request whose answer comes when the process that died is back. It outlives the part of the
// test in which it begins.
func (tr *trial) background(t *testing.T, c *client.Client, path, key string, in, out any) {
	t.Helper()
	tr.told = make(chan error, 1)
	ctx := context.WithoutCancel(t.Context())
	go func() { tr.told <- insist(ctx, c, path, key, in, out) }()
}

// answered waits for the answer to the request.
func (tr *trial) answered(t *testing.T) {
	t.Helper()
	if tr.told == nil {
		return
	}
	if err := <-tr.told; err != nil {
		t.Fatal(err)
	}
	tr.told = nil
}

// insist repeats a request with its key until it is answered.
func insist(ctx context.Context, c *client.Client, path, key string, in, out any) error {
	var final error
	err := await(ctx, 2*patience, func() error {
		err := c.Post(ctx, path, key, in, out)
		if passing(err) {
			return err
		}
		final = err
		return nil
	})
	return errors.Join(err, final)
}

// walletTale makes another wallet of the customer.
type walletTale struct{ network exchange.Network }

func (b walletTale) play(t *testing.T, w *world, tr *trial, arm func()) {
	t.Helper()
	c, err := w.login(t.Context(), stack.AdminEmail, stack.AdminPassword)
	if err != nil {
		t.Fatal(err)
	}
	arm()
	tr.background(t, c, "/api/v1/auth/wallets", "wallet-"+tr.point, map[string]any{
		"user_id": w.customer, "network": b.network, "asset": "USDT", "label": tr.point,
	}, nil)
}

func (walletTale) judge(t *testing.T, w *world, tr *trial) {
	t.Helper()
	tr.answered(t)
	var n int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM wallets WHERE label = $1`, tr.point).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("one request made %d wallets: %v", n, err)
	}
}
