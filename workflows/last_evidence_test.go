package workflows_test

import (
	"strconv"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/converter"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
	"kivuko/workflows/workflowstest"
)

// chronicle writes a history by hand.
type chronicle struct {
	t      *testing.T
	events []*historypb.HistoryEvent
}

func (c *chronicle) payloads(values ...any) *commonpb.Payloads {
	c.t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayloads(values...)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *chronicle) add(kind enums.EventType, fill func(*historypb.HistoryEvent)) int64 {
	id := int64(len(c.events) + 1)
	e := &historypb.HistoryEvent{EventId: id, EventType: kind}
	fill(e)
	c.events = append(c.events, e)
	return id
}

// task is one workflow task, from its scheduling to its completion.
func (c *chronicle) task() int64 {
	scheduled := c.add(enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
			WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{},
		}
	})
	started := c.add(enums.EVENT_TYPE_WORKFLOW_TASK_STARTED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
			WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: scheduled},
		}
	})
	return c.add(enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
			WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{ScheduledEventId: scheduled, StartedEventId: started},
		}
	})
}

func (c *chronicle) look(task int64, in activities.ConfirmInput) int64 {
	return c.add(enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityId: strconv.FormatInt(e.EventId, 10), ActivityType: &commonpb.ActivityType{Name: "ConfirmPayment"},
				TaskQueue: &taskqueuepb.TaskQueue{Name: workflows.QueueMomo}, Input: c.payloads(in),
				WorkflowTaskCompletedEventId: task,
			},
		}
	})
}

func (c *chronicle) found(scheduled int64, found activities.Confirmed) {
	started := c.add(enums.EVENT_TYPE_ACTIVITY_TASK_STARTED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{
			ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: scheduled},
		}
	})
	c.add(enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
				ScheduledEventId: scheduled, StartedEventId: started, Result: c.payloads(found),
			},
		}
	})
}

// TestReplayOfANoticeThatComesLast replays a watch for late money whose attempt definitely fails in the same task in which a
// callback comes. It must check again before it ends, because nothing checks after it.
func TestReplayOfANoticeThatComesLast(t *testing.T) {
	c := &chronicle{t: t}
	attempt, order := id(30), id(31)
	c.add(enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
				WorkflowType: &commonpb.WorkflowType{Name: workflows.TypeLatePayment}, TaskQueue: &taskqueuepb.TaskQueue{Name: workflows.QueueFlows},
				Input:      c.payloads(workflows.LatePaymentInput{AttemptID: attempt, OrderID: order}),
				WorkflowId: workflows.LatePaymentID(attempt), OriginalExecutionRunId: "run", FirstExecutionRunId: "run", Attempt: 1,
			},
		}
	})
	first := c.look(c.task(), activities.ConfirmInput{AttemptID: attempt})
	c.found(first, activities.Confirmed{
		AttemptID: attempt, State: activities.PaymentFailed, Order: activities.OrderState{OrderID: order, Status: exchange.OrderCancelled},
	})
	c.add(enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
				SignalName: workflows.SignalCallback, Input: c.payloads(workflows.CallbackRef{CallbackID: id(32), AttemptID: attempt}),
			},
		}
	})
	c.look(c.task(), activities.ConfirmInput{AttemptID: attempt})
	c.task() // so that the task before is replayed
	if err := replayer().ReplayWorkflowHistory(workflowstest.Silent(), &historypb.History{Events: c.events}); err != nil {
		t.Error(err)
	}
}
