package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// PullRates reads the configured rate source once. A schedule starts it; without a source it does nothing.
func PullRates(ctx workflow.Context) (activities.PulledRates, error) {
	p, err := fetch(ctx, question, "Read the rate source", rates.PullRates)
	return p, err
}
