package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"kivuko/dev/stack"
	"kivuko/dev/supervisor"
	"kivuko/workflows"
)

// TestAnotherWorkerTakesOver kills a worker in the middle of an activity that waits for the mobile money operator.
// The worker had sent heartbeats. Another worker gets the activity because the heartbeats stopped, long before the
// timeout of the attempt.
func TestAnotherWorkerTakesOver(t *testing.T) {
	w := open(t)
	operator, first := w.stack.Supervisor.Child(stack.ProcessMomo), w.stack.Supervisor.Child(stack.ProcessWorker("momo"))
	goOn := func() {
		if err := operator.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
	if err := operator.Signal(syscall.SIGSTOP); err != nil { // it accepts requests and never responds
		t.Fatal(err)
	}
	t.Cleanup(goOn)
	o := w.buy(t, purchase{crypto: "5"})
	flow := workflows.OnRampID(o.ID)
	eventually(t, "the activity sends heartbeats", func() error {
		step := w.prompting(t, flow)
		switch {
		case step == nil:
			return errors.New("no prompt is being sent")
		case step.GetLastHeartbeatTime().AsTime().Before(step.GetLastStartedTime().AsTime()) || step.GetLastHeartbeatTime() == nil:
			return errors.New("it has sent no heartbeat since it began")
		case !strings.HasSuffix(step.GetLastWorkerIdentity(), fmt.Sprint(":", first.PID())):
			return fmt.Errorf("it runs in %s", step.GetLastWorkerIdentity())
		}
		return nil
	})
	second, err := w.stack.Supervisor.Start(t.Context(), supervisor.Spec{
		Name: "worker-momo-2", Path: w.stack.Product, Args: []string{"worker", "--queues", "momo"}, Dir: w.stack.Root,
		Env: w.stack.ProductEnvironment(stack.ProcessWorker("momo")),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(second.Stop(), first.Restart(context.Background())); err != nil {
			t.Error(err)
		}
	})
	goOn()
	w.settled(t, o)
	begun := started(w.events(t, flow, ""), "PromptPayer")
	if begun == nil || begun.GetAttempt() < 2 {
		t.Fatalf("the activity was not started again: %v", begun)
	}
	if kind := begun.GetLastFailure().GetTimeoutFailureInfo().GetTimeoutType(); kind != enumspb.TIMEOUT_TYPE_HEARTBEAT {
		t.Errorf("another worker got the activity because of %v", begun.GetLastFailure())
	}
	if !strings.HasSuffix(begun.GetIdentity(), fmt.Sprint(":", second.PID())) {
		t.Errorf("the activity was taken over by %s, not by process %d", begun.GetIdentity(), second.PID())
	}
}

// prompting returns the activity of an order that sends a prompt, while a worker runs it.
func (w *harness) prompting(t *testing.T, flow string) *workflowpb.PendingActivityInfo {
	t.Helper()
	d, err := w.temporal.DescribeWorkflowExecution(t.Context(), flow, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range d.GetPendingActivities() {
		if a.GetActivityType().GetName() == "PromptPayer" && a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED {
			return a
		}
	}
	return nil
}

// started returns the event of an activity's last start, which also has the failure of the attempt before.
func started(events []*historypb.HistoryEvent, name string) *historypb.ActivityTaskStartedEventAttributes {
	scheduled := map[int64]bool{}
	var last *historypb.ActivityTaskStartedEventAttributes
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == name {
			scheduled[e.GetEventId()] = true
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil && scheduled[a.GetScheduledEventId()] {
			last = a
		}
	}
	return last
}
