package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// RepairParked makes the rows of the list of parked flows what the flows' search attributes say. A schedule starts it.
func RepairParked(ctx workflow.Context) (activities.RepairedParked, error) {
	var done activities.RepairedParked
	err := workflow.ExecuteActivity(record(ctx, "Compare the list of parked flows with Temporal's"), orders.RepairParked).Get(ctx, &done)
	return done, err
}
