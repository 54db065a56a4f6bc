package workflows_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"pgregory.net/rapid"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
)

// faults decides which calls to the outside fail, and whether before or after their effect.
type faults struct {
	mu     sync.Mutex
	calls  int
	before map[int]bool
	after  map[int]bool
	steps  int
	deaths map[int]bool // activities that finish their work and crash before they respond
	log    []string
}

var errAway = exchange.Errorf(exchange.CodeUnavailable, "away")

func (f *faults) hit(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.before[f.calls] {
		f.log = append(f.log, fmt.Sprintf("%d %s fails before its effect", f.calls, call))
		return errAway
	}
	return nil
}

func (f *faults) lose(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.after[f.calls] {
		f.log = append(f.log, fmt.Sprintf("%d %s fails after its effect", f.calls, call))
		return errAway
	}
	return nil
}

type dying struct {
	interceptor.WorkerInterceptorBase
	faults *faults
}

func (d *dying) InterceptActivity(ctx context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &dyingActivity{faults: d.faults}
	i.Next = next
	return i
}

type dyingActivity struct {
	interceptor.ActivityInboundInterceptorBase
	faults *faults
}

func (d *dyingActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	out, err := d.Next.ExecuteActivity(ctx, in)
	d.faults.mu.Lock()
	defer d.faults.mu.Unlock()
	d.faults.steps++
	if err == nil && d.faults.deaths[d.faults.steps] {
		d.faults.log = append(d.faults.log, fmt.Sprintf("step %d is done, but its response is lost", d.faults.steps))
		return nil, activities.Failure(ctx, errAway)
	}
	return out, err
}

var drawnPayers = []payer{
	pays,
	{code: "0", after: 5 * time.Second, silent: true},
	{code: "0", early: true, twice: true},
	{code: "0", early: true, deaf: true},
	{code: "0", after: 20 * time.Second, deaf: true, silent: true},
	{code: "0", after: 70 * time.Second, mute: true, confirms: true},
	{code: "0", after: 5 * time.Second, lies: true},
	{code: "0", after: 5 * time.Second, foreign: true},
	{code: "0", after: 5 * time.Second, pays: "1300", confirms: true},
	{code: "0", after: 5 * time.Second, pays: "900", confirms: true},
	{code: "0", after: 20 * time.Minute},
	{code: "1032", after: 8 * time.Second, late: 5 * time.Minute},
	{code: "1037", after: 60 * time.Second, late: 2 * time.Minute},
	{code: "1037", after: 60 * time.Second, late: 5 * time.Hour, silent: true},
	{code: "2001", after: 9 * time.Second},
	{unsent: true},
	{refuse: "500.001.1001", transient: true},
	{refuse: "403.002.1001", config: true},
}

var drawnPayouts = []payer{
	pays, pays,
	{code: "0", after: 5 * time.Second, silent: true},
	{code: "0", after: 5 * time.Second, deaf: true, twice: true},
	{code: "0", after: 5 * time.Second, deaf: true, silent: true},
	{code: "2040", after: 5 * time.Second},
	{refuse: "2040"},
}

var drawnOutcomes = []outcome{
	{},
	{},
	{dropped: true},
	{reorg: true},
	{reverts: true},
	{slow: 40 * time.Second},
	{refused: chain.ReasonGas},
	{refused: chain.ReasonBlocked},
}

func numbers(t *rapid.T, label string, most, limit int) map[int]bool {
	set := map[int]bool{}
	for _, n := range rapid.SliceOfN(rapid.IntRange(1, limit), 0, most).Draw(t, label) {
		set[n] = true
	}
	return set
}

// trouble is many faults in a purchase, and people who do what may help.
type trouble struct {
	faults                   *faults
	payers, payouts, results []int
	retries                  []int // seconds after which the customer asks for another prompt
	cancel                   int   // and cancels; 0: never
	verbs                    []string
}

var troubles = rapid.Custom(func(t *rapid.T) trouble {
	return trouble{
		faults: &faults{
			before: numbers(t, "fail before", 6, 120), after: numbers(t, "fail after", 6, 120), deaths: numbers(t, "die after", 4, 20),
		},
		payers:  rapid.SliceOfN(rapid.IntRange(0, len(drawnPayers)-1), 1, 4).Draw(t, "payers"),
		payouts: rapid.SliceOfN(rapid.IntRange(0, len(drawnPayouts)-1), 1, 3).Draw(t, "payouts"),
		results: rapid.SliceOfN(rapid.IntRange(0, len(drawnOutcomes)-1), 1, 4).Draw(t, "outcomes"),
		retries: rapid.SliceOfN(rapid.IntRange(1, 16*60), 0, 3).Draw(t, "retries"),
		cancel:  rapid.IntRange(0, 20*60).Draw(t, "cancel"),
		verbs:   rapid.SliceOfN(rapid.SampledFrom([]string{"retry", "refund", "resolve"}), 0, 6).Draw(t, "commands"),
	}
})

// befall schedules the trouble.
func (x trouble) befall(w *harness) {
	f := x.faults
	w.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Hour, Interceptors: []interceptor.WorkerInterceptor{&dying{faults: f}}})
	w.operator.script = func(a exchange.PaymentAttempt, n int) payer {
		if a.Direction == exchange.Payout {
			return drawnPayouts[pick(x.payouts, n, 0)]
		}
		return drawnPayers[pick(x.payers, n, 0)]
	}
	w.chain.script = func(n int) outcome {
		if n > len(x.results) {
			return outcome{}
		}
		return drawnOutcomes[x.results[n-1]]
	}
	w.store.fault, w.store.lost = f.hit, f.lose
	w.operator.fault, w.operator.lost = f.hit, f.lose
	w.chain.fault, w.chain.lost = f.hit, f.lose
	for i, s := range x.retries {
		w.at(time.Duration(s)*time.Second, retryPayment(w, fmt.Sprintf("retry-%d", i)))
	}
	if x.cancel > 0 {
		w.at(time.Duration(x.cancel)*time.Second, func() { cancel(w) })
	}
	x.operators(w)
	w.at(60*24*time.Hour, func() {
		panic(fmt.Sprintf("it never ends: order %s (%s), attempts %+v, exceptions %+v, refunds %+v",
			w.order().Status, w.order().StatusDetail, w.attemptList(), w.exceptions(), w.refunds()))
	})
}

// operators try what may help, in an order that is drawn, and resolve what is left at the end.
func (x trouble) operators(w *harness) {
	for i, v := range x.verbs {
		w.at(time.Duration(i+1)*31*time.Minute, func() { w.command(v) })
	}
	for day := 2; day < 40; day++ {
		w.at(time.Duration(day)*24*time.Hour, func() {
			w.command([]string{"retry", "refund", "resolve"}[day%3])
			w.lateCommand([]string{"refund", "resolve", "retry"}[day%3])
		})
	}
}

// The draws are the same in every run: each has a database of its own, so they are fewer than a search by chance would make.
func TestFaultsNeverLoseOrDoubleMoney(t *testing.T) {
	t.Parallel()
	for seed := range 40 {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			x, w := troubles.Example(seed), newHarness(t)
			x.befall(w)
			w.run(t)
			w.sound(t)
			if o := w.order(); o.Status != "" && !exchange.OnRampMachine.Terminal(o.Status) {
				t.Errorf("the flow ended with the order %s (%s)", o.Status, o.StatusDetail)
			}
			if t.Failed() {
				t.Log(x.faults.log)
			}
		})
	}
}
