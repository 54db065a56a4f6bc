package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
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

// row says which scenario brings a process to the points of some activities. The points themselves are found as they are
// passed, see package crash: a pattern stands for whatever there is, and the most specific one counts.
type row struct {
	at     string // a pattern of path.Match, "OpenOrder/*/*"
	worker string // the queue whose process dies
	tale   func() tale
}

// trial is one run of a scenario, in which a process kills itself at one point, once.
type trial struct {
	row
	point   string // "DeliverPayment/RecordFinal#1/after", or a pattern: the process dies at the first that matches
	tale    tale
	reached string // where the process has died

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
	// play brings the process to its point, which it arms when no other flow can come there first.
	play(t *testing.T, w *world, tr *trial, arm func())
	// judge waits for the end, with what people have to do for it, and compares it with what the operator
	// and the chains recorded.
	judge(t *testing.T, w *world, tr *trial)
}

// always has a tale that keeps nothing between trials.
func always(b tale) func() tale { return func() tale { return b } }

// lane is a part of the table. Its trials go one after the other, the lanes side by side: they play on different chains, or
// on none.
type lane struct {
	name string
	rows []row
}

func table() []lane {
	return []lane{
		{"tron", among(slices.Concat(orderRows(), saleRows()), floatRows())},
		{"ethereum", slices.Concat(solanaRows(), transferRows())},
		{"webhooks", hookRows()},
	}
}

// rowOf finds the most specific row of a point.
func rowOf(lanes []lane, point string) (best row, found bool) {
	for _, l := range lanes {
		for _, r := range l.rows {
			if matches(r.at, point) && len(r.at) > len(best.at) {
				best, found = r, true
			}
		}
	}
	return best, found
}

func matches(pattern, point string) bool {
	ok, err := path.Match(pattern, point)
	if err != nil {
		panic(pattern + ": " + err.Error())
	}
	return ok
}

// round are the trials to be played together, by lane.
type round map[string][]*trial

func (r round) all() []*trial { return slices.Concat(slices.Collect(maps.Values(r))...) }

// firstRound has a trial for each row, at the first of its points.
func firstRound(lanes []lane, which *regexp.Regexp) round {
	r := round{}
	for _, l := range lanes {
		for _, row := range l.rows {
			if which.MatchString(row.at) {
				r[l.name] = append(r[l.name], &trial{row: row, point: row.at, tale: row.tale()})
			}
		}
	}
	return r
}

// roundOf has a trial for each point, in the order of the table.
func roundOf(lanes []lane, points []string) round {
	r := round{}
	for _, l := range lanes {
		for _, row := range l.rows {
			for _, point := range points {
				if best, _ := rowOf(lanes, point); best.at == row.at {
					r[l.name] = append(r[l.name], &trial{row: row, point: point, tale: row.tale()})
				}
			}
		}
	}
	return r
}

// crashesVariable asks for the trials whose points match a regular expression, or for "all", which `make test-crash`
// does. They take several times as long as all other tests of this package.
const crashesVariable = "KIVUKO_E2E_CRASHES"

// brief are the trials of every run: one death of each kind of process, where it is the least convenient.
var brief = []string{
	"OpenOrder/OpenOrder#1/after", "PromptPayer/call#1/after", "SignPayment/SaveSignedAttempt#1/after", "DeliverPayment/call#1/after",
	"FollowDeposits/RecordFinalBlock#1/after", "DeliverWebhooks/RecordWebhook#1/before",
}

// TestACrashOfEachProcess is what TestCrashPoints does, with a few trials.
func TestACrashOfEachProcess(t *testing.T) {
	if os.Getenv(crashesVariable) != "" {
		t.Skip("TestCrashPoints has these trials too")
	}
	w := open(t)
	r := roundOf(table(), brief)
	w.reach(t, r)
	t.Parallel() // other tests run while Temporal learns of the dead
	w.judge(t, r)
}

// TestCrashPoints kills the process in charge before and after every side effect. However that falls, everything
// ends as if nothing had happened: collected once, paid out once or not at all, and booked so.
//
// In the first round each row of the table kills once. That, and the recovery, shows which points there are; the next rounds
// kill at each that was not played yet, until there is none.
func TestCrashPoints(t *testing.T) {
	which := os.Getenv(crashesVariable)
	if which == "" {
		t.Skip("`make test-crash` runs all trials, TestACrashOfEachProcess some")
	}
	wanted, err := regexp.Compile(strings.TrimPrefix(which, "all"))
	if err != nil {
		t.Fatalf("%s: %v", crashesVariable, err)
	}
	w, lanes, played := open(t), table(), map[string]bool{}
	const most = 4
	for n, r := 1, firstRound(lanes, wanted); n <= most && len(r) > 0; n++ {
		t.Run(fmt.Sprintf("round %d", n), func(t *testing.T) {
			w.reach(t, r)
			w.judge(t, r)
		})
		for _, tr := range r.all() {
			played[tr.point], played[tr.reached] = true, true
		}
		var left []string
		all, err := passed(w.crash)
		if err != nil {
			t.Fatal(err)
		}
		for point := range all {
			row, found := rowOf(lanes, point)
			if found && !played[point] && !exempt(point) && (wanted.MatchString(point) || wanted.MatchString(row.at)) && w.plays(row) {
				left = append(left, point)
			}
		}
		slices.Sort(left)
		t.Logf("round %d played %d points; %d more are known", n, len(r.all()), len(left))
		r = roundOf(lanes, left)
		if n == most && len(left) > 0 {
			t.Errorf("after %d rounds these points are not played: %v", n, left)
		}
	}
	if wanted.String() == "" {
		w.complete(t)
	}
}

// plays reports whether the stack has the network on which a row plays.
func (w *world) plays(r row) bool {
	return w.stack.Solana() || !strings.HasSuffix(r.worker, string(exchange.Solana))
}

// reach has the processes of a round die, and has them run again.
func (w *world) reach(t *testing.T, r round) {
	t.Helper()
	for name, trials := range r {
		r[name] = slices.DeleteFunc(trials, func(tr *trial) bool { return !w.plays(tr.row) })
		if len(r[name]) < len(trials) {
			t.Log("what only happens on Solana is left out: its token programs could not be had")
		}
	}
	t.Run("reach", func(t *testing.T) {
		w.mend(t) // when all lanes are through: one may still play what another one's end would heal
		heal(t, w.ethereum())
		for name, trials := range r {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w.prepare(t, trials)
				for _, tr := range trials {
					t.Run(tr.name(), func(t *testing.T) { w.crashAt(t, tr) })
				}
			})
		}
	})
}

// judge waits for the ends of a round. What was not reached is told at the end too, in one line: of a long output often only
// the end is kept.
func (w *world) judge(t *testing.T, r round) {
	t.Helper()
	var missed, failed []string
	for _, tr := range r.all() {
		if tr.reached == "" {
			missed = append(missed, tr.point)
		} else if !t.Run(tr.name(), func(t *testing.T) { tr.tale.judge(t, w, tr) }) {
			failed = append(failed, tr.point)
		}
	}
	w.invariants(t)
	w.agree(t)
	w.booksAgree(t)
	if len(missed)+len(failed) > 0 {
		t.Errorf("of %d points: not reached, or not gone on from: %v; did not end as they should: %v", len(r.all()), missed, failed)
	}
}

// name is the trial's as a test.
func (tr *trial) name() string { return strings.ReplaceAll(tr.point, "/", " ") }

// prepare opens, all at once, what the trials of a lane begin with.
func (w *world) prepare(t *testing.T, trials []*trial) {
	t.Helper()
	var reverted []*trial
	for _, tr := range trials {
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
	victim, died := 0, ""
	tr.tale.play(t, w, tr, func() {
		victim = w.stack.Supervisor.Child(stack.ProcessWorker(tr.worker)).PID()
		w.arm(t, tr.point, tr.worker)
	})
	err := await(t.Context(), recovery, func() error {
		content, err := os.ReadFile(filepath.Join(w.crash, "fallen", fileOf(tr.point)))
		if died = string(content); err == nil && died == "" {
			err = errors.New("it is being written")
		}
		return err
	})
	if err != nil {
		_ = os.Remove(filepath.Join(w.crash, "armed", fileOf(tr.point)))
		t.Fatalf("point %s was not reached; %s", tr.point, w.standOf(tr))
	}
	if best, _ := rowOf(table(), died); best.at != tr.at {
		t.Errorf("the process died at %s, which is played by %q and not by %q", died, best.at, tr.at)
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
	tr.reached = died
}

// fileOf is the name of the file that arms a point.
func fileOf(point string) string { return strings.NewReplacer("/", ".", "*", "_").Replace(point) }

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

// arm has the process of a queue kill itself when it comes to a point next.
func (w *world) arm(t *testing.T, point, worker string) {
	t.Helper()
	_ = os.Remove(filepath.Join(w.crash, "fallen", fileOf(point))) // of an earlier arming
	file := filepath.Join(w.crash, "arming."+fileOf(point))        // appears in its place as a whole
	err := errors.Join(os.WriteFile(file, []byte(worker+"\n"+point), 0o600), os.Rename(file, filepath.Join(w.crash, "armed", fileOf(point))))
	if err != nil {
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
