package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/exchange"
)

// Limits bound one kind of call. A call that can't be had within them comes back to the flow, which decides.
type Limits struct {
	Timeout    time.Duration `yaml:"timeout"`     // of one try
	Budget     time.Duration `yaml:"budget"`      // of all tries together; 0: no end
	Heartbeat  time.Duration `yaml:"heartbeat"`   // 0: none is asked for
	FirstRetry time.Duration `yaml:"first_retry"` // doubled from try to try
	LastRetry  time.Duration `yaml:"last_retry"`  // and never longer than this
	Tries      int32         `yaml:"tries"`       // 0: no end
}

// Calls are the limits by kind of call; temporal.yaml holds them.
type Calls struct {
	Local    Limits `yaml:"local"`
	Database Limits `yaml:"database"`
	Rail     Limits `yaml:"rail"`
	Look     Limits `yaml:"look"`
	Signer   Limits `yaml:"signer"`
	Delivery Limits `yaml:"delivery"`
	Watch    Limits `yaml:"watch"`
}

// calls is what UseCalls was given, or these. They are no part of what a replay compares, so a worker may
// have other limits than the one that began a flow.
var calls = Calls{
	Local:    Limits{Timeout: 3 * time.Second, FirstRetry: 100 * time.Millisecond, LastRetry: time.Second, Tries: 3},
	Database: Limits{Timeout: 20 * time.Second, FirstRetry: 500 * time.Millisecond, LastRetry: 30 * time.Second},
	Rail:     Limits{Timeout: 2 * time.Minute, Heartbeat: 15 * time.Second, FirstRetry: time.Second, LastRetry: 30 * time.Second},
	Look:     Limits{Timeout: 2 * time.Minute, Budget: 3 * time.Minute, Heartbeat: 15 * time.Second, FirstRetry: time.Second, LastRetry: 30 * time.Second},
	Signer:   Limits{Timeout: time.Minute, FirstRetry: time.Second, LastRetry: 30 * time.Second},
	Delivery: Limits{Timeout: time.Minute, Budget: 30 * time.Minute, Heartbeat: 45 * time.Second, FirstRetry: time.Second, LastRetry: 15 * time.Second},
	Watch:    Limits{Timeout: 10 * time.Minute, Budget: 20 * time.Minute, Heartbeat: 45 * time.Second, FirstRetry: time.Second, LastRetry: 15 * time.Second},
}

// UseCalls sets the limits of a process, before its first worker starts.
func UseCalls(c Calls) error {
	if err := c.check(); err != nil {
		return err
	}
	calls = c
	return nil
}

// check refuses limits under which a flow could not do its work: one without end where the flow must go on,
// or one that gives up where it must not.
func (c Calls) check() error {
	for _, k := range []struct {
		name          string
		limits        Limits
		ends, patient bool
	}{
		{"local", c.Local, true, false},
		{"database", c.Database, false, true},
		{"rail", c.Rail, false, true},
		{"look", c.Look, true, false},
		{"signer", c.Signer, false, true},
		{"delivery", c.Delivery, true, false},
		{"watch", c.Watch, true, false},
	} {
		l := k.limits
		switch {
		case l.Timeout <= 0 || l.FirstRetry <= 0 || l.LastRetry < l.FirstRetry:
			return fmt.Errorf("calls: %s: timeout and first_retry must be above zero, last_retry not below first_retry", k.name)
		case l.Budget < 0 || l.Heartbeat < 0 || l.Tries < 0:
			return fmt.Errorf("calls: %s: nothing may be negative", k.name)
		case k.ends && l.Budget == 0 && l.Tries == 0:
			return fmt.Errorf("calls: %s: budget or tries must be set", k.name)
		case k.patient && (l.Budget != 0 || l.Tries != 0):
			return fmt.Errorf("calls: %s: must have neither budget nor tries; it is made until it succeeds", k.name)
		}
	}
	return nil
}

func (l Limits) policy() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval: l.FirstRetry, BackoffCoefficient: 2, MaximumInterval: l.LastRetry, MaximumAttempts: l.Tries,
	}
}

// kind is how a step is carried out: on which queue and within which limits. One without a queue is a local activity.
type kind struct {
	queue   string
	limits  *Limits       // in calls, so that UseCalls reaches them
	timeout time.Duration // in place of the limits' own where it is set
	budget  time.Duration // likewise
}

// within is the kind with another budget.
func (k kind) within(budget time.Duration) kind {
	k.budget = budget
	return k
}

var (
	// local is for one short transaction that operators need not see.
	local = kind{limits: &calls.Local}
	// database is for transactions of our own database. They are tried for as long as it is away: nothing
	// else can be done in the meantime, and running twice changes nothing.
	database = kind{queue: QueueFlows, limits: &calls.Database}
	// rail is for steps that talk to the mobile money operator and write down what it said. They ask
	// what is known before they act, so they too are tried for as long as something is away.
	rail = kind{queue: QueueMomo, limits: &calls.Rail}
	// look is for questions to the operator, which are asked again later in any case.
	look = kind{queue: QueueMomo, limits: &calls.Look}
	// question is for asking others than the operator what they know, within the same limits.
	question = kind{queue: QueueFlows, limits: &calls.Look}
	// webhook is for a round of attempts. Receivers have limits of their own, so that only a failure of our own parts
	// is tried again.
	webhook = kind{queue: QueueWebhooks, limits: &calls.Database, timeout: hookTimeout}
)

// signer is for signatures, and for making keys.
func signer(n exchange.Network) kind { return kind{queue: QueueSigner(n), limits: &calls.Signer} }

// cosigner is for adding a signature to what an officer brought, who waits for the answer.
func cosigner(n exchange.Network) kind { return signer(n).within(offlineBudget) }

// offline is for transactions that are signed elsewhere. An officer waits for the answer, so the network is
// not asked without end.
func offline(n exchange.Network) kind {
	return kind{queue: QueueChain(n), limits: &calls.Signer, budget: offlineBudget}
}

// offlineBudget is how long an officer waits for a transaction to be handed out or taken.
const offlineBudget = 2 * time.Minute

// topUp is for approving gas, which asks a node for the price.
func topUp(n exchange.Network) kind { return kind{queue: QueueChain(n), limits: &calls.Database} }

// delivery is for bringing a transaction to its end, which polls. When its budget is used up an operator is
// told; the watch goes on.
func delivery(n exchange.Network) kind { return kind{queue: QueueChain(n), limits: &calls.Delivery} }

// watch is for following a network's blocks, which takes a minute and heartbeats. When its budget is used up
// an operator is told; the watch goes on.
func watch(n exchange.Network) kind { return kind{queue: QueueChain(n), limits: &calls.Watch} }

// longestPause ends the growth of pauses: a flow looks at least once a day.
const longestPause = 24 * time.Hour

// slower stretches a pause that repeats to an eighth of the time since a moment, up to a day. The server
// ends a flow whose history grows too long, so one that nobody attends to must not look at its first pace
// for months.
func slower(ctx workflow.Context, pause time.Duration, since time.Time) time.Duration {
	const share = 8
	return max(pause, min(workflow.Now(ctx).Sub(since)/share, longestPause))
}

// letOthersRun gives every coroutine its turn. A signal that comes in the task in which a flow would end is
// in the hands of the coroutine that waits for it, and in no channel any more; the flow sees it only after
// that coroutine ran. The last coroutine to be started runs last.
func letOthersRun(ctx workflow.Context) {
	ran := false
	workflow.GoNamed(ctx, "last in turn", func(workflow.Context) { ran = true })
	_ = workflow.Await(ctx, func() bool { return ran })
}

// await waits until a condition holds or the time is over. The timer is cancelled when the condition
// holds first: one that fires later would wake the flow for nothing. The context is never cancelled, so
// the wait can't fail.
func await(ctx workflow.Context, d time.Duration, summary string, condition func() bool) {
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	o := workflow.AwaitOptions{Timeout: d, TimerOptions: workflow.TimerOptions{Summary: summary}}
	_, _ = workflow.AwaitWithOptions(ctx, o, condition)
}
