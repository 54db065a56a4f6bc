package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/workflows"
)

// inFlight is how many orders are under way when a part of the stack dies.
const inFlight = 10

// TestACrashOfEachProcess is TestCrashPoints with a few trials. It and those below come last: for up to a minute, nothing
// is read of a chain whose worker has died.
func TestACrashOfEachProcess(t *testing.T) {
	if os.Getenv(crashesVariable) != "" {
		t.Skip("TestCrashPoints has these trials too")
	}
	w := open(t)
	r := roundOf(table(), brief)
	w.reach(t, r)
	t.Parallel() // other tests run while Temporal detects the dead processes
	w.judge(t, r)
}

// TestPartsOfTheStackDie kills whole processes with SIGKILL, and the database without a checkpoint, while orders are
// under way. Every order must end, and no effect may happen twice.
func TestPartsOfTheStackDie(t *testing.T) {
	w := open(t)
	var all []order
	for _, fault := range []struct {
		name string
		hit  func(*testing.T, *harness)
	}{
		{"API", apiDies}, {"Temporal", temporalDies}, {"PostgreSQL", databaseDies}, {"TRON node", tronDies}, {"workers", workersDie},
	} {
		t.Run(fault.name, func(t *testing.T) {
			all = append(all, w.rush(t, func() { fault.hit(t, w) })...)
		})
	}
	if t.Failed() {
		return
	}
	t.Parallel() // Temporal detects the dead workers while other tests run
	t.Run("every order ends once", func(t *testing.T) {
		for _, o := range all {
			w.settled(t, o)
		}
		w.invariants(t)
		w.agree(t)
	})
}

// rush posts orders concurrently, calls strike at a random moment while they are posted or under way, and returns
// them. The clients repeat their requests until they get a response. Each order has its own wallet address, so that
// duplicate orders can be counted.
func (w *harness) rush(t *testing.T, strike func()) []order {
	t.Helper()
	c := w.amina(t)
	var wait sync.WaitGroup
	orders, failures, addresses := make([]order, inFlight), make([]error, inFlight), make([]string, inFlight)
	for i := range inFlight {
		in, key := w.form(t, purchase{crypto: "2"}), uuid.NewString()
		addresses[i], _ = in["wallet_address"].(string)
		wait.Go(func() { orders[i], failures[i] = place(t.Context(), c, in, key) })
	}
	time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
	strike()
	wait.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	var rows int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM orders WHERE wallet_address = ANY ($1)`, pq.Array(addresses)).Scan(&rows)
	if err != nil || rows != inFlight {
		t.Errorf("%d requests made %d orders: %v", inFlight, rows, err)
	}
	return orders
}

// TestMainJobSurvivesTheDatabase kills PostgreSQL while the main job of `make run` buys, and again while it sells. The
// job must go on to its end, and the product's processes must stay up: it is the last test that ends any.
func TestMainJobSurvivesTheDatabase(t *testing.T) {
	w := open(t)
	product := []string{stack.ProcessAPI}
	for _, queue := range w.stack.Served() {
		product = append(product, stack.ProcessWorker(queue))
	}
	before := map[string]int{}
	for _, name := range product {
		before[name] = w.stack.Supervisor.Child(name).PID()
	}
	w.hastenAll(t, workflows.TypeDepositWatch) // the job is not about the workers that died before
	job, said, done := w.seed(), &transcript{}, make(chan error, 1)
	job.Say = func(format string, args ...any) { _, _ = fmt.Fprintf(said, format+"\n", args...) }
	go func() { done <- demo.MainJob(t.Context(), job) }()
	for _, moment := range []string{" opens order ", " waits at "} {
		eventually(t, "the main job says"+moment, func() error {
			if strings.Contains(said.String(), moment) || len(done) > 0 { // a job that gave up says no more
				return nil
			}
			return errors.New(said.String())
		})
		databaseDies(t, w)
	}
	t.Parallel() // Temporal finds out meanwhile that its records of the chains' watches were lost
	if err := <-done; err != nil {
		t.Errorf("the main job: %v\n%s", err, said)
	}
	for _, name := range product {
		if pid := w.stack.Supervisor.Child(name).PID(); pid != before[name] {
			t.Errorf("the %s ended with the database", name)
		}
	}
	w.invariants(t)
	w.agree(t)
}

// settled waits for an order's end. If a process dies after it stored that it will send a prompt and before it stored
// the response, the outcome is unknown, and the customer cancels the order.
func (w *harness) settled(t *testing.T, o order) {
	t.Helper()
	const recovery = 4 * time.Minute
	o = w.untilFor(t, o.ID, "over", recovery, func(o order) bool {
		return o.Over() || (o.StatusDetail == "outcome" && len(prompted(w.books(t), o.ID)) == 0)
	})
	if !o.Over() {
		w.sendCommand(t, w.amina(t), o.ID, "cancel", nil)
		o = w.ends(t, o.ID, "cancelled", "")
		w.notPaidOut(t, o)
		if e := collected(w.books(t), o.ID); len(e) != 0 {
			t.Errorf("a cancelled order was collected: %+v", e)
		}
		return
	}
	w.paidOnce(t, w.books(t), o)
}

// kill ends a process as a crash would, and restarts it after the given time.
func (w *harness) kill(t *testing.T, name string, away time.Duration) {
	t.Helper()
	c := w.stack.Supervisor.Child(name)
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(away)
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// apiDies kills the API three times. It back-dates the claims of the interrupted requests, so that they count as
// abandoned at once and not after a minute.
func apiDies(t *testing.T, w *harness) {
	var dead time.Time
	for range 3 {
		api := w.stack.Supervisor.Child(stack.ProcessAPI)
		if err := api.Kill(); err != nil {
			t.Fatal(err)
		}
		dead = time.Now()
		if err := api.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
	}
	const older = `UPDATE idempotency_keys SET claimed_at = claimed_at - interval '10 minutes' WHERE state = 'in_flight' AND claimed_at < $1`
	if _, err := w.db.ExecContext(t.Context(), older, dead); err != nil {
		t.Fatal(err)
	}
}

func temporalDies(t *testing.T, w *harness) { w.kill(t, stack.ProcessTemporal, time.Second) }

func tronDies(t *testing.T, w *harness) {
	time.Sleep(time.Second) // so that transactions are on their way
	w.kill(t, stack.ProcessTron, time.Second)
}

// databaseDies kills the product's and Temporal's database at once, without a checkpoint.
func databaseDies(t *testing.T, w *harness) {
	before := w.stack.Postgres.PID()
	if err := syscall.Kill(before, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "PostgreSQL comes back", func() error {
		if w.stack.Postgres.PID() == before {
			return errors.New("it is down")
		}
		return w.db.PingContext(t.Context())
	})
}

func workersDie(t *testing.T, w *harness) {
	for _, queue := range stack.Queues {
		time.Sleep(time.Duration(rand.IntN(700)) * time.Millisecond)
		w.kill(t, stack.ProcessWorker(queue), 0)
	}
}

// TestSalesSurviveTheDeathOfWorkers kills the workers of all kinds while sales are under way on every network. All
// sales must complete, and no payee may be paid twice.
func TestSalesSurviveTheDeathOfWorkers(t *testing.T) {
	if os.Getenv(crashesVariable) == "" {
		t.Skip("`make test-crash` runs it; TestPartsOfTheStackDie kills the same workers under purchases")
	}
	w := open(t)
	const each = 3
	type running struct {
		n demo.Node
		o order
	}
	var all []running
	for _, n := range w.seed().Nodes() {
		for range each {
			all = append(all, running{n, w.sell(t, n, sale{})})
		}
	}
	for _, r := range all {
		w.payIn(t, r.n, r.o, soldCrypto)
	}
	workersDie(t, w)
	t.Parallel() // TestCrashPoints waits for Temporal to learn of its dead meanwhile
	for _, r := range all {
		w.soldOnce(t, r.n, r.o, soldCrypto, soldFiat)
	}
	w.invariants(t)
	w.booksAgree(t)
}

// TestSoak runs many orders while processes die again and again. It runs on request only.
func TestSoak(t *testing.T) {
	w := open(t)
	n := soakOrders(t)
	var all []order
	for len(all) < n {
		faults := []func(*testing.T, *harness){apiDies, temporalDies, databaseDies, tronDies, workersDie}
		all = append(all, w.rush(t, func() { faults[rand.IntN(len(faults))](t, w) })...)
		t.Logf("%d of %d orders", len(all), n)
	}
	for _, o := range all {
		w.settled(t, o)
	}
	w.invariants(t)
	w.agree(t)
}
