package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// RepairParked makes the list of parked flows agree with the flows' search attributes. A schedule starts it.
func RepairParked(ctx workflow.Context) (activities.RepairedParked, error) {
	return fetch(ctx, database, "Compare the list of parked flows with Temporal's", orders.RepairParked)
}
