package worker

import (
	"context"
	"errors"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// LiveFlows looks for the flows of live rows at Temporal, and starts them.
type LiveFlows struct{ Client client.Client }

var _ activities.LiveFlows = LiveFlows{}

// State reads the flow's state from Temporal itself, not from its index, which lags.
func (f LiveFlows) State(ctx context.Context, r exchange.LiveRow) (activities.FlowState, error) {
	running, children, err := f.look(ctx, workflows.LiveFlowOf(r).ID)
	if err != nil || !running {
		return activities.FlowGone, err
	}
	for _, child := range children {
		if alive, _, err := f.look(ctx, child); err != nil || !alive {
			return activities.FlowStranded, err
		}
	}
	return activities.FlowRuns, nil
}

// look reports whether a flow is running, and the ids of the children that it waits for.
func (f LiveFlows) look(ctx context.Context, id string) (running bool, children []string, err error) {
	d, err := f.Client.DescribeWorkflowExecution(ctx, id, "")
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	for _, child := range d.GetPendingChildren() {
		children = append(children, child.GetWorkflowId())
	}
	return d.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, children, nil
}

// Start starts the row's flow. One that runs is left as it is.
func (f LiveFlows) Start(ctx context.Context, r exchange.LiveRow) error {
	flow := workflows.LiveFlowOf(r)
	_, err := f.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: flow.ID, TaskQueue: workflows.QueueFlows, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, StaticSummary: flow.Summary, TypedSearchAttributes: flow.Shown,
	}, flow.Type, flow.Input)
	return err
}

// Remind signals a running flow. One that has ended meanwhile is no error: the next comparison starts it.
func (f LiveFlows) Remind(ctx context.Context, r exchange.LiveRow) error {
	err := f.Client.SignalWorkflow(ctx, workflows.LiveFlowOf(r).ID, "", workflows.SignalResume, nil)
	if _, over := errors.AsType[*serviceerror.NotFound](err); over {
		return nil
	}
	return err
}
