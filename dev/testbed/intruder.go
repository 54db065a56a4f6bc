package testbed

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"kivuko/workflows"
)

// Intruder has all rights on Temporal, and none of the product's payload keys.
type Intruder struct{ UI temporal.Client }

// Start starts a flow with a payload as it is, and waits until the flow has taken or refused it.
func (a Intruder) Start(t *testing.T, id, flow string, input *commonpb.Payload) {
	t.Helper()
	_, err := a.UI.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.QueueFlows, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, flow, converter.NewRawValue(input))
	if err != nil {
		t.Fatal(err)
	}
	Eventually(t, "the flow "+id+" has had a task", func() error {
		for _, e := range a.History(t, id) {
			if e.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
				return nil
			}
		}
		return errors.New("it has not")
	})
}

// Failed waits until a flow has failed.
func (a Intruder) Failed(t *testing.T, id string) {
	t.Helper()
	Eventually(t, "the flow "+id+" has failed", func() error {
		d, err := a.UI.DescribeWorkflowExecution(t.Context(), id, "")
		if err == nil && d.WorkflowExecutionInfo.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_FAILED {
			err = fmt.Errorf("it is %s", d.WorkflowExecutionInfo.GetStatus())
		}
		return err
	})
}

// Clear is a value as the Web UI sends it: plain JSON.
func (a Intruder) Clear(t *testing.T, value any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(value)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Update sends an update, and returns why it was refused.
func (a Intruder) Update(t *testing.T, flow, name string, payload *commonpb.Payload) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	handle, err := a.UI.UpdateWorkflow(ctx, temporal.UpdateWorkflowOptions{
		WorkflowID: flow, UpdateName: name, Args: []any{converter.NewRawValue(payload)}, WaitForStage: temporal.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, nil)
}

// History reads the events of a flow.
func (a Intruder) History(t *testing.T, flow string) []*historypb.HistoryEvent {
	t.Helper()
	var all []*historypb.HistoryEvent
	for events := a.UI.GetWorkflowHistory(t.Context(), flow, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// Started copies the input of a flow.
func (a Intruder) Started(t *testing.T, flow string) *commonpb.Payload {
	t.Helper()
	return a.History(t, flow)[0].GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()[0]
}

// Updated copies the argument of an update.
func (a Intruder) Updated(t *testing.T, flow, name string) *commonpb.Payload {
	t.Helper()
	for _, e := range a.History(t, flow) {
		if r := e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest(); r.GetInput().GetName() == name {
			return r.GetInput().GetArgs().GetPayloads()[0]
		}
	}
	t.Fatalf("%s had no update %s", flow, name)
	return nil
}

// Reset sets a flow back to its first task.
func (a Intruder) Reset(t *testing.T, flow string) {
	t.Helper()
	for _, e := range a.History(t, flow) {
		if e.EventType != enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			continue
		}
		_, err := a.UI.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
			Namespace: "kivuko", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: flow}, Reason: "an attack", RequestId: uuid.NewString(),
			WorkflowTaskFinishEventId: e.EventId,
		})
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}
