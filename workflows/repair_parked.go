package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// RepairParked makes the rows of the list of parked flows what the flows' search attributes say. A schedule starts it.
func RepairParked(ctx workflow.Context) (activities.RepairedParked, error) {
	return fetch(ctx, database, "Compare the list of parked flows with Temporal's", orders.RepairParked)
}
