package e2e

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"kivuko/workflows"
)

// retaken makes the next process repeat the open steps of a dead mobile money process now. If Temporal repeated them
// after its timeouts, one of them could reach the point of a later trial, whose process would then die at the wrong
// moment.
func (w *harness) retaken(t *testing.T) {
	t.Helper()
	for _, flow := range []string{
		workflows.TypeOnRamp, workflows.TypeOffRamp, workflows.TypeMomoPayout, workflows.TypeLatePayment, workflows.TypeLatePayout,
		workflows.TypeMoveFloat, workflows.TypeOTCDeposit,
	} {
		for _, id := range w.allRunning(t, flow) {
			w.hasten(t, id)
			eventually(t, id+" does again what it did", func() error {
				d, err := w.temporal.DescribeWorkflowExecution(t.Context(), id, "")
				if err != nil {
					return err
				}
				for _, a := range d.GetPendingActivities() {
					if a.GetAttempt() > 1 {
						return fmt.Errorf("%s is tried the time %d: %v", a.GetActivityType().GetName(), a.GetAttempt(), a.GetLastFailure().GetMessage())
					}
				}
				return nil
			})
		}
	}
}

// allRunning returns the ids of the running flows of a type.
func (w *harness) allRunning(t *testing.T, flow string) (ids []string) {
	t.Helper()
	list, err := w.temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", flow),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.GetExecutions() {
		ids = append(ids, e.GetExecution().GetWorkflowId())
	}
	return ids
}

// hastenAll is hasten for all flows of a type.
func (w *harness) hastenAll(t *testing.T, flow string) {
	t.Helper()
	for _, id := range w.allRunning(t, flow) {
		w.hasten(t, id)
	}
}

// hasten fails the steps of a flow that dead processes had begun, so that Temporal starts them again at once. Trials
// use it when the next trial needs the flow; the others wait for Temporal's timeouts.
func (w *harness) hasten(t *testing.T, flow string) {
	t.Helper()
	eventually(t, "no dead process works at "+flow, func() error {
		d, err := w.temporal.DescribeWorkflowExecution(t.Context(), flow, "")
		if err != nil {
			return err
		}
		for _, a := range d.GetPendingActivities() {
			if a.GetState() != enumspb.PENDING_ACTIVITY_STATE_STARTED || alive(a.GetLastWorkerIdentity()) {
				continue
			}
			run := d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
			dead := temporal.NewApplicationError("the process is dead", "dead")
			if err := w.temporal.CompleteActivityByID(t.Context(), "kivuko", flow, run, a.GetActivityId(), nil, dead); err != nil {
				return err
			}
			return errors.New("there was one")
		}
		return nil
	})
}

// alive reports whether the process of a worker's identity, host:pid, runs.
func alive(identity string) bool {
	var pid int
	_, err := fmt.Sscan(identity[strings.LastIndex(identity, ":")+1:], &pid)
	return err == nil && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
