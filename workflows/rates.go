package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// PullRates looks once at the configured source of rates. A schedule starts it; without a source it does
// nothing.
func PullRates(ctx workflow.Context) (activities.PulledRates, error) {
	p, err := fetch(ctx, question, "Look at the source of rates", rates.PullRates)
	return p, err
}
