package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/workflowservice/v1"

	"kivuko/dev/client"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// recovery is how long a trial may take: Temporal detects a dead process by its timeouts, of up to two
// minutes.
const recovery = 5 * time.Minute

// row assigns a scenario to the crash points of some activities. The points register themselves when they are passed
// (package crash); a pattern matches several of them, and the most specific pattern counts.
type row struct {
	at       string // a pattern of path.Match, "OpenOrder/*/*"
	worker   string // the queue whose process dies
	scenario func() scenario
}

// trial is one run of a scenario, in which a process kills itself once, at one point.
type trial struct {
	row
	point    string // "DeliverPayment/RecordFinal#1/after", or a pattern: the process dies at the first that matches
	scenario scenario
	reached  string // where the process has died
	last     bool   // no other trial follows on its track in this round

	answer chan error // the answer to a request that dies with the process, where the scenario has one
	// Its object is one of these.
	order    order
	transfer sent
	deposit  exchange.Wallet
	desk     otcDeposit
	taken    takenOut
	swap     swapped
	shared   uuid.UUID // an account of several owners
	proposal proposed

	committee *committee // whose account pays
	// Fields of a transfer.
	address string
	amount  money.Amount
	payload json.RawMessage // what is to be signed for a cold wallet
}

// scenario is the course of a trial, with or without a crash.
type scenario interface {
	// play brings the process to its point. It arms the point when no other flow can reach it first.
	play(t *testing.T, w *harness, tr *trial, arm func())
	// judge sends the commands that the end needs, waits for it, and compares it with the records of the
	// operator and the chains.
	judge(t *testing.T, w *harness, tr *trial)
}

// always returns a constructor of a scenario without state.
func always(b scenario) func() scenario { return func() scenario { return b } }

// track is a part of the table. Its trials run one after the other; the tracks run in parallel, because they use
// different chains, or none.
type track struct {
	name string
	rows []row
}

func table() []track {
	return []track{
		{"tron", among(slices.Concat(orderRows(), saleRows(), otcRows(), withdrawalRows(), bankRefundRows(), givenRows()), floatRows())},
		{"ethereum", slices.Concat(solanaRows(), swapRows(), multisigRows(), proposalRows(), transferRows())},
		{"webhooks", hookRows()},
	}
}

// rowOf finds the most specific row of a point.
func rowOf(tracks []track, point string) (best row, found bool) {
	for _, l := range tracks {
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

// round has the trials that are played together, by track.
type round map[string][]*trial

func (r round) all() []*trial { return slices.Concat(slices.Collect(maps.Values(r))...) }

// firstRound has a trial for each row, at the first of its points.
func firstRound(tracks []track, which *regexp.Regexp, of share) round {
	r := round{}
	for _, l := range tracks {
		for _, row := range l.rows {
			if which.MatchString(row.at) && of.has(row.at) {
				r[l.name] = append(r[l.name], &trial{row: row, point: row.at, scenario: row.scenario()})
			}
		}
	}
	return r
}

// roundOf has a trial for each point, in the order of the table.
func roundOf(tracks []track, points []string) round {
	r := round{}
	for _, l := range tracks {
		for _, row := range l.rows {
			for _, point := range points {
				if best, _ := rowOf(tracks, point); best.at == row.at {
					r[l.name] = append(r[l.name], &trial{row: row, point: point, scenario: row.scenario()})
				}
			}
		}
	}
	return r
}

// crashesVariable asks for the trials whose points match a regular expression, or for "all", which `make test-crash`
// does. They take several times as long as all other tests of this package.
const crashesVariable = "KIVUKO_E2E_CRASHES"

// shareVariable asks for a part of all trials, "0/6" to "5/6": those of about every sixth activity.
const shareVariable = "KIVUKO_E2E_CRASH_SHARE"

// share is a part of the trials. The trials of one activity belong together, because some need what an earlier one left.
type share struct{ part, of uint32 }

func askedShare(t *testing.T) share {
	t.Helper()
	s := share{of: 1}
	if asked := os.Getenv(shareVariable); asked != "" {
		if _, err := fmt.Sscanf(asked, "%d/%d", &s.part, &s.of); err != nil || s.part >= s.of {
			t.Fatalf("%s=%s: want a part like 0/6", shareVariable, asked)
		}
		t.Logf("only the trials of share %s; `make test-crash` plays all", asked)
	}
	return s
}

// has reports whether the trials of a point, or of a row's pattern, are in the share.
func (s share) has(point string) bool {
	activity, _, _ := strings.Cut(point, "/")
	h := fnv.New32a()
	_, _ = h.Write([]byte(activity))
	return h.Sum32()%s.of == s.part
}

// brief are the trials of every run: one crash of each kind of process, at its most critical point.
var brief = []string{
	"OpenOrder/OpenOrder#1/after", "PromptPayer/call#1/after", "SignPayment/SaveSignedAttempt#1/after", "DeliverPayment/call#1/after",
	"FollowDeposits/RecordFinalBlock#1/after", "DeliverWebhooks/RecordWebhook#1/before",
}

// TestCrashPoints kills the working process before and after every side effect. The results must be the same as without
// crashes: collected once, paid out once or not at all, and booked accordingly.
//
// In the first round each row of the table kills once. That run and its recovery register the points; the next rounds
// kill at each point that was not played yet, until there is none.
func TestCrashPoints(t *testing.T) {
	which := os.Getenv(crashesVariable)
	if which == "" {
		t.Skip("`make test-crash` runs all trials, TestACrashOfEachProcess some")
	}
	wanted, err := regexp.Compile(strings.TrimPrefix(which, "all"))
	if err != nil {
		t.Fatalf("%s: %v", crashesVariable, err)
	}
	of := askedShare(t)
	w, tracks, played := open(t), table(), map[string]bool{}
	w.watch(t)
	const most = 4
	for n, r := 1, firstRound(tracks, wanted, of); n <= most && len(r) > 0; n++ {
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
			row, found := rowOf(tracks, point)
			if found && !played[point] && !exempt(point) && of.has(point) && (wanted.MatchString(point) || wanted.MatchString(row.at)) && w.plays(row) {
				left = append(left, point)
			}
		}
		slices.Sort(left)
		t.Logf("round %d played %d points; %d more are known", n, len(r.all()), len(left))
		r = roundOf(tracks, left)
		if n == most && len(left) > 0 {
			t.Errorf("after %d rounds these points are not played: %v", n, left)
		}
	}
	if wanted.String() == "" {
		w.complete(t, of)
	}
}

// plays reports whether the stack has a row's network.
func (w *harness) plays(r row) bool {
	return w.stack.Solana() || !strings.HasSuffix(r.worker, string(exchange.Solana))
}

// reach makes the processes of a round die, and restarts them.
func (w *harness) reach(t *testing.T, r round) {
	t.Helper()
	for name, trials := range r {
		r[name] = slices.DeleteFunc(trials, func(tr *trial) bool { return !w.plays(tr.row) })
		if len(r[name]) < len(trials) {
			t.Log("what only happens on Solana is left out: its token programs could not be had")
		}
	}
	t.Run("reach", func(t *testing.T) {
		w.mend(t) // only after all tracks, because it would end faults that another one still needs
		heal(t, w.ethereum())
		for name, trials := range r {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w.prepare(t, trials)
				for i, tr := range trials {
					tr.last = i == len(trials)-1
					t.Run(tr.name(), func(t *testing.T) { w.crashAt(t, tr) })
				}
			})
		}
	})
}

// judge waits for the ends of a round. It also prints the points that were not reached in one line at the end, because
// often only the end of a long output is kept.
func (w *harness) judge(t *testing.T, r round) {
	t.Helper()
	var missed, failed []string
	for _, tr := range r.all() {
		if tr.reached == "" {
			missed = append(missed, tr.point)
		} else if !t.Run(tr.name(), func(t *testing.T) { tr.scenario.judge(t, w, tr) }) {
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

// name returns the trial's name as a test.
func (tr *trial) name() string { return strings.ReplaceAll(tr.point, "/", " ") }

// prepare opens the first objects of a track's trials, all at once.
func (w *harness) prepare(t *testing.T, trials []*trial) {
	t.Helper()
	var reverted []*trial
	for _, tr := range trials {
		if o, ok := tr.scenario.(orderScenario); ok && o.verb != "" && !o.late {
			reverted = append(reverted, tr)
		}
	}
	if len(reverted) > 0 {
		w.revert(t, reverted)
	}
}

// crashAt brings a process to its point, and restarts it when it died there.
func (w *harness) crashAt(t *testing.T, tr *trial) {
	t.Helper()
	victim, died := 0, ""
	tr.scenario.play(t, w, tr, func() {
		victim = w.stack.Supervisor.Child(stack.ProcessWorker(tr.worker)).PID()
		w.arm(t, tr.point, tr.worker)
	})
	err := await(t.Context(), recovery, func() error {
		content, err := os.ReadFile(filepath.Join(w.crash, "killed", fileOf(tr.point)))
		if died = string(content); err == nil && died == "" {
			err = errors.New("it is being written")
		}
		return err
	})
	if err != nil {
		_ = os.Remove(filepath.Join(w.crash, "armed", fileOf(tr.point)))
		t.Fatalf("point %s was not reached; %s\n%s", tr.point, w.standOf(tr), w.standOfWorker(tr.worker))
	}
	if best, _ := rowOf(table(), died); best.at != tr.at {
		t.Errorf("the process died at %s, which is played by %q and not by %q", died, best.at, tr.at)
	}
	w.revive(t, tr, victim)
	if after, ok := tr.scenario.(interface {
		restarted(*testing.T, *harness, *trial)
	}); ok {
		after.restarted(t, w, tr)
	}
	if tr.worker == workflows.QueueMomo {
		w.retaken(t)
	}
	tr.reached = died
}

// fileOf returns the name of the file that arms a point.
func fileOf(point string) string { return strings.NewReplacer("/", ".", "*", "_").Replace(point) }

// standOf describes the state of the order or transfer of a trial whose point was not reached, and of the newest movement of
// float.
func (w *harness) standOf(tr *trial) string {
	const read = `SELECT coalesce((SELECT 'its order is ' || status || '/' || status_detail FROM orders WHERE id = $1),
		(SELECT 'its transfer is ' || status || '/' || status_detail FROM transfers WHERE id = $2), 'it has no order and no transfer')
		|| (SELECT coalesce('; the newest movement of float is ' || max(status || ' ' || code), '') FROM float_moves WHERE created_at = (SELECT max(created_at) FROM float_moves))`
	var said string
	if err := w.db.QueryRowContext(context.Background(), read, tr.order.ID, tr.transfer.ID).Scan(&said); err != nil {
		return err.Error()
	}
	return said
}

// standOfWorker describes what a worker's process has done last, and all steps that are under way or wait to be repeated.
func (w *harness) standOfWorker(queue string) string {
	const lastLines = 8000
	c := w.stack.Supervisor.Child(stack.ProcessWorker(queue))
	said, err := os.ReadFile(c.LogPath())
	if err != nil {
		said = []byte(err.Error())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "its process is %d; the end of its log:\n%s\nsteps:\n", c.PID(), said[max(0, len(said)-lastLines):])
	list, err := w.temporal.ListWorkflow(context.Background(), &workflowservice.ListWorkflowExecutionsRequest{Query: "ExecutionStatus = 'Running'"})
	if err != nil {
		return b.String() + err.Error()
	}
	for _, e := range list.GetExecutions() {
		d, err := w.temporal.DescribeWorkflowExecution(context.Background(), e.GetExecution().GetWorkflowId(), "")
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", e.GetExecution().GetWorkflowId(), err)
			continue
		}
		for _, a := range d.GetPendingActivities() {
			fmt.Fprintf(&b, "%s: %s is %s, try %d by %s: %s\n", e.GetExecution().GetWorkflowId(), a.GetActivityType().GetName(), a.GetState(), a.GetAttempt(),
				a.GetLastWorkerIdentity(), a.GetLastFailure().GetMessage())
		}
		if task := d.GetPendingWorkflowTask(); task != nil {
			fmt.Fprintf(&b, "%s: a workflow task is %s, try %d\n", e.GetExecution().GetWorkflowId(), task.GetState(), task.GetAttempt())
		}
	}
	return b.String()
}

// revive checks that only the trial's process died, and starts it. The supervisor would restart it too, after a pause
// that grows with every crash. A process that it has already restarted is killed once more, which is faster than
// waiting for it.
func (w *harness) revive(t *testing.T, tr *trial, victim int) {
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

// arm makes the process of a queue kill itself when it next reaches a point.
func (w *harness) arm(t *testing.T, point, worker string) {
	t.Helper()
	_ = os.Remove(filepath.Join(w.crash, "killed", fileOf(point))) // of an earlier arming
	file := filepath.Join(w.crash, "arming."+fileOf(point))        // renamed, so that it appears complete
	err := errors.Join(os.WriteFile(file, []byte(worker+"\n"+point), 0o600), os.Rename(file, filepath.Join(w.crash, "armed", fileOf(point))))
	if err != nil {
		t.Fatal(err)
	}
}

// background sends a request whose response comes when the dead process is back. It may last longer than the part
// of the test that starts it.
func (tr *trial) background(t *testing.T, c *client.Client, path, key string, in, out any) {
	t.Helper()
	tr.answer = make(chan error, 1)
	ctx := context.WithoutCancel(t.Context())
	go func() { tr.answer <- insist(ctx, c, path, key, in, out) }()
}

// answered waits for the answer to the request.
func (tr *trial) answered(t *testing.T) {
	t.Helper()
	if tr.answer == nil {
		return
	}
	if err := <-tr.answer; err != nil {
		t.Fatal(err)
	}
	tr.answer = nil
}

// walletScenario makes another wallet of the customer.
type walletScenario struct{ network exchange.Network }

func (b walletScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	c, err := w.adminLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	arm()
	tr.background(t, c, "/api/v1/auth/wallets", "wallet-"+tr.point, map[string]any{
		"user_id": w.customer, "network": b.network, "asset": "USDT", "label": tr.point,
	}, nil)
}

func (walletScenario) judge(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	tr.answered(t)
	var n int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM wallets WHERE label = $1`, tr.point).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("one request made %d wallets: %v", n, err)
	}
}
