package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/exchange"
)

// Limits bound one kind of call. A call that exceeds them fails, and the flow decides how to go on.
type Limits struct {
	Timeout    time.Duration `yaml:"timeout"`     // of one try
	Budget     time.Duration `yaml:"budget"`      // of all tries together; 0: no limit
	Heartbeat  time.Duration `yaml:"heartbeat"`   // 0: no heartbeat is required
	FirstRetry time.Duration `yaml:"first_retry"` // first pause, doubled from try to try
	LastRetry  time.Duration `yaml:"last_retry"`  // longest pause
	Tries      int32         `yaml:"tries"`       // 0: no limit
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

// calls are the limits in use: these defaults, or those given to UseCalls. A replay doesn't compare them, so workers may
// have different limits.
var calls = Calls{
	Local:    Limits{Timeout: 3 * time.Second, FirstRetry: 100 * time.Millisecond, LastRetry: time.Second, Tries: 3},
	Database: Limits{Timeout: 20 * time.Second, FirstRetry: 500 * time.Millisecond, LastRetry: 30 * time.Second},
	Rail:     Limits{Timeout: 2 * time.Minute, Heartbeat: 15 * time.Second, FirstRetry: time.Second, LastRetry: 30 * time.Second},
	Look:     Limits{Timeout: 2 * time.Minute, Budget: 3 * time.Minute, Heartbeat: 15 * time.Second, FirstRetry: time.Second, LastRetry: 30 * time.Second},
	Signer:   Limits{Timeout: time.Minute, FirstRetry: time.Second, LastRetry: 30 * time.Second},
	Delivery: Limits{Timeout: time.Minute, Budget: 30 * time.Minute, Heartbeat: 45 * time.Second, FirstRetry: time.Second, LastRetry: 15 * time.Second},
	Watch:    Limits{Timeout: 10 * time.Minute, Budget: 20 * time.Minute, Heartbeat: 45 * time.Second, FirstRetry: time.Second, LastRetry: 15 * time.Second},
}

// CallsInUse returns the limits in use.
func CallsInUse() Calls { return calls }

// UseCalls sets the limits of a process, before its first worker starts.
func UseCalls(c Calls) error {
	if err := c.check(); err != nil {
		return err
	}
	calls = c
	return nil
}

// check refuses limits under which a flow could not work: a call without a limit where the flow must go on, or a call that
// gives up where it must not.
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
			return fmt.Errorf("calls: %s: budget, heartbeat and tries must not be negative", k.name)
		case k.ends && l.Budget == 0 && l.Tries == 0:
			return fmt.Errorf("calls: %s: budget or tries must be set", k.name)
		case k.patient && (l.Budget != 0 || l.Tries != 0):
			return fmt.Errorf("calls: %s: budget and tries must not be set: the call is retried until it succeeds", k.name)
		}
	}
	return nil
}

func (l Limits) policy() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval: l.FirstRetry, BackoffCoefficient: 2, MaximumInterval: l.LastRetry, MaximumAttempts: l.Tries,
	}
}

// kind is how a step is executed: its queue and its limits. A step without a queue is a local activity.
type kind struct {
	queue    string
	limits   *Limits           // points into calls, so that UseCalls changes them
	timeout  time.Duration     // replaces that of the limits if it is set
	budget   time.Duration     // likewise
	priority temporal.Priority // of the step; that of its flow where it is zero
}

// ranked returns the kind with a priority.
func (k kind) ranked(p temporal.Priority) kind {
	k.priority = p
	return k
}

// within returns the kind with another budget.
func (k kind) within(budget time.Duration) kind {
	k.budget = budget
	return k
}

var (
	// local is for one short transaction that operators need not see.
	local = kind{limits: &calls.Local}
	// database is for transactions of our own database. They are retried while it is down: nothing else can be done
	// meanwhile, and they are idempotent.
	database = kind{queue: QueueFlows, limits: &calls.Database}
	// rail is for steps that call the mobile money operator and store its answer. They check what is known before they
	// act, so they too are retried without limit.
	rail = kind{queue: QueueMomo, limits: &calls.Rail}
	// look is for queries to the mobile money operator, which are repeated later in any case.
	look = kind{queue: QueueMomo, limits: &calls.Look}
	// question is for queries to other services, within the same limits.
	question = kind{queue: QueueFlows, limits: &calls.Look}
	// webhook is for a round of deliveries. Failures of receivers are handled by the round itself, so only failures on our
	// side are retried.
	webhook = kind{queue: QueueWebhooks, limits: &calls.Database, timeout: hookTimeout}
)

// signer is for signing and for creating keys.
func signer(n exchange.Network) kind { return kind{queue: QueueSigner(n), limits: &calls.Signer} }

// cosigner is for adding a signature to an imported transaction while an officer waits for the answer.
func cosigner(n exchange.Network) kind { return signer(n).within(offlineBudget) }

// offline is for transactions that are signed offline. An officer waits for the answer, so the retries are limited.
func offline(n exchange.Network) kind {
	return kind{queue: QueueChain(n), limits: &calls.Signer, budget: offlineBudget}
}

// offlineBudget is how long an officer waits for a payload or for an import.
const offlineBudget = 2 * time.Minute

// gasAhead is for looking which wallets lack gas, for which a node simulates their payments. The next run looks again.
func gasAhead(n exchange.Network) kind {
	return kind{queue: QueueChain(n), limits: &calls.Signer, budget: aheadBudget}
}

// aheadBudget is less than the pause between two runs, so that a network without a worker delays none.
const aheadBudget = 50 * time.Second

// topUp is for approving gas, which asks a node for the price.
func topUp(n exchange.Network) kind { return kind{queue: QueueChain(n), limits: &calls.Database} }

// delivery is for polling a transaction until it has ended. When its budget is used up, the flow parks and keeps watching.
func delivery(n exchange.Network) kind { return kind{queue: QueueChain(n), limits: &calls.Delivery} }

// watch is for following a network's blocks, which takes a minute and heartbeats. When its budget is used up, the flow parks
// and keeps watching.
func watch(n exchange.Network) kind { return kind{queue: QueueChain(n), limits: &calls.Watch} }

// longestPause is the longest pause: a flow checks at least once a day.
const longestPause = 24 * time.Hour

// slower extends a repeated pause to an eighth of the time since a moment, up to a day. The server ends a flow whose
// history grows too long, so a flow that waits for months must check less and less often.
func slower(ctx workflow.Context, pause time.Duration, since time.Time) time.Duration {
	const share = 8
	return max(pause, min(workflow.Now(ctx).Sub(since)/share, longestPause))
}

// letOthersRun lets every other coroutine run. A signal that comes in the task in which a flow would end has already left
// its channel; the flow sees it only after the coroutine that received it has run. The coroutine started last runs last.
func letOthersRun(ctx workflow.Context) {
	ran := false
	workflow.GoNamed(ctx, "last in turn", func(workflow.Context) { ran = true })
	_ = workflow.Await(ctx, func() bool { return ran })
}

// await waits until a condition holds or the time has passed. When the condition holds first, it cancels the timer, which
// would wake the flow for nothing. The context is never cancelled, so the wait can't fail.
func await(ctx workflow.Context, d time.Duration, summary string, condition func() bool) {
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	o := workflow.AwaitOptions{Timeout: d, TimerOptions: workflow.TimerOptions{Summary: summary}}
	_, _ = workflow.AwaitWithOptions(ctx, o, condition)
}
