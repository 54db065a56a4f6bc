package worker

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// FloatFlows wakes the flows of sales and refunds that wait for float.
type FloatFlows struct{ Client client.Client }

var _ activities.FloatWaker = FloatFlows{}

// WakeForFloat signals the flows that may wait for float that there may be more. A flow that has ended is no error.
func (f FloatFlows) WakeForFloat(ctx context.Context, w exchange.FloatWaiter) error {
	var failed error
	for _, id := range workflows.FlowsForFloat(w) {
		err := f.Client.SignalWorkflow(ctx, id, "", workflows.SignalFloat, nil)
		if _, over := errors.AsType[*serviceerror.NotFound](err); err != nil && !over {
			failed = err
		}
	}
	return failed
}
