package worker

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/workflows"
)

// watchCheck is how often a worker checks whether the deposit watches of its networks run. They never end by themselves,
// but an operator may have terminated one, or Temporal's data may be new.
const watchCheck = time.Minute

// keepWatches keeps a deposit watch running for each network whose queue this process serves, until ctx ends. Several
// processes may do so: each network still has one watch.
func keepWatches(ctx context.Context, c client.Client, o Options) {
	ticker := time.NewTicker(watchCheck)
	defer ticker.Stop()
	for {
		for _, queue := range o.Queues {
			network := workflows.ChainOf(queue)
			if network == "" {
				continue
			}
			if err := startWatch(ctx, c, network); err != nil && ctx.Err() == nil {
				o.Logger.Warn("the deposit watch could not be started; the worker tries again", "network", network, "cause", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// startWatch starts the deposit watch of a network unless it runs.
func startWatch(ctx context.Context, c client.Client, n exchange.Network) error {
	const timeout = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: workflows.DepositWatchID(n), TaskQueue: workflows.QueueFlows,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes:    workflows.DepositWatchAttributes(n), StaticSummary: workflows.DepositWatchSummary(n),
	}, workflows.TypeDepositWatch) // the flow knows its network by its id
	return err
}
