package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/exchange"
)

// Limits of calls. A call that can't be had within them comes back to the flow, which decides.
const (
	localTimeout    = 3 * time.Second
	localTries      = 3
	recordTimeout   = 20 * time.Second
	railTimeout     = 2 * time.Minute
	lookBudget      = 3 * time.Minute // of one look for a payment, repetitions included
	signTimeout     = time.Minute
	deliverTimeout  = time.Minute
	deliverBudget   = 30 * time.Minute // after which a person is told; the watch goes on
	heartbeat       = 45 * time.Second
	longestInterval = 30 * time.Second
)

func policy(first, most time.Duration) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: first, BackoffCoefficient: 2, MaximumInterval: most}
}

// local is for one short transaction that nobody needs to see.
func local(ctx workflow.Context, summary string) workflow.Context {
	p := policy(100*time.Millisecond, time.Second)
	p.MaximumAttempts = localTries
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: localTimeout, RetryPolicy: p, Summary: summary,
	})
}

// record is for transactions of our own database. They are tried for as long as it is away: nothing
// else can be done in the meantime, and running twice changes nothing.
func record(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: QueueFlows, StartToCloseTimeout: recordTimeout, RetryPolicy: policy(500*time.Millisecond, longestInterval),
		Summary: summary,
	})
}

// rail is for steps that talk to the mobile money operator and write down what it said. They ask
// what is known before they act, so they too are tried for as long as something is away.
func rail(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: QueueMomo, StartToCloseTimeout: railTimeout, RetryPolicy: policy(time.Second, longestInterval), Summary: summary,
	})
}

// look is for questions to the operator, which are asked again later in any case.
func look(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: QueueMomo, StartToCloseTimeout: railTimeout, ScheduleToCloseTimeout: lookBudget,
		RetryPolicy: policy(time.Second, longestInterval), Summary: summary,
	})
}

// signer is for signatures.
func signer(ctx workflow.Context, n exchange.Network, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: QueueSigner(n), StartToCloseTimeout: signTimeout, RetryPolicy: policy(time.Second, longestInterval), Summary: summary,
	})
}

// delivery is for bringing a transaction to its end, which polls.
func delivery(ctx workflow.Context, n exchange.Network, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: QueueChain(n), StartToCloseTimeout: deliverTimeout, ScheduleToCloseTimeout: deliverBudget,
		HeartbeatTimeout: heartbeat, RetryPolicy: policy(time.Second, 15*time.Second), Summary: summary,
	})
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
