package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// TypePullRates is the name of PullRates.
const TypePullRates = "PullRates"

var rates *activities.Rates

// PullRates looks once at the configured source of rates. A schedule starts it; without a source it does
// nothing.
func PullRates(ctx workflow.Context) (activities.PulledRates, error) {
	var p activities.PulledRates
	err := workflow.ExecuteActivity(question(ctx, "Look at the source of rates"), rates.PullRates).Get(ctx, &p)
	return p, err
}
