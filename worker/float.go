package worker

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/workflows"
)

// FloatFlows wakes the flows of sales that wait for float.
type FloatFlows struct{ Client client.Client }

var _ activities.FloatWaker = FloatFlows{}

// WakeForFloat tells the flow of a sale that there may be float. One that is over has no need of it.
func (f FloatFlows) WakeForFloat(ctx context.Context, order uuid.UUID) error {
	err := f.Client.SignalWorkflow(ctx, workflows.OffRampID(order), "", workflows.SignalFloat, nil)
	if _, over := errors.AsType[*serviceerror.NotFound](err); over {
		return nil
	}
	return err
}
