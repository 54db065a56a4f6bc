package worker

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/workflows"
)

// watchCheck is how often a worker looks whether the watches of its networks run. They never end by
// themselves; somebody may have ended one, or Temporal's data may be new.
const watchCheck = time.Minute

// keepWatches has a watch over deposits run for each network whose queue this process serves, until ctx ends.
// Several processes may do so: there is one watch of a network, whoever starts it.
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
				o.Logger.Warn("the watch over deposits could not be started; it is tried again", "network", network, "cause", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// startWatch starts the watch of a network unless it runs.
func startWatch(ctx context.Context, c client.Client, n exchange.Network) error {
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: workflows.DepositWatchID(n), TaskQueue: workflows.QueueFlows,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes:    workflows.DepositWatchAttributes(n), StaticSummary: workflows.DepositWatchSummary(n),
	}, workflows.TypeDepositWatch, workflows.DepositWatchInput{Network: n, Status: workflows.WatchFollowing})
	return err
}
