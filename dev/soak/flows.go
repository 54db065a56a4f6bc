package soak

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/workflowservice/v1"

	"kivuko/workflows"
)

// flow is one that goes on.
type flow struct {
	id, kind string
	since    time.Time
}

// running are the flows about somebody's money that have not ended.
func (w *world) running(ctx context.Context) (all []flow, err error) {
	const page = 500
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	for next := []byte(nil); ; {
		list, err := w.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: "ExecutionStatus = 'Running'", PageSize: page, NextPageToken: next,
		})
		if err != nil {
			return nil, err
		}
		for _, e := range list.GetExecutions() {
			f := flow{e.GetExecution().GetWorkflowId(), e.GetType().GetName(), e.GetStartTime().AsTime()}
			if slices.Contains(moneyFlows, f.kind) {
				all = append(all, f)
			}
		}
		if next = list.GetNextPageToken(); len(next) == 0 {
			return all, nil
		}
	}
}

// moneyFlows are the types of flows that have an end of their own.
var moneyFlows = []string{
	workflows.TypeOnRamp, workflows.TypeOffRamp, workflows.TypeMomoPayout, workflows.TypeReturnDeposit, workflows.TypeCryptoPayout, workflows.TypeRefund,
	workflows.TypeLatePayment, workflows.TypeLatePayout, workflows.TypeTransfer, workflows.TypeCreateWallet,
}

// watches tells whether a flow may go on without anybody waiting: the look-out for late money lasts a day.
func (f flow) watches() bool { return f.kind == workflows.TypeLatePayment }

// object is what the flow is about; zero where that is no single thing.
func (f flow) object() uuid.UUID {
	_, id := workflows.ObjectOf(f.kind, f.id)
	return id
}

func (f flow) String() string { return fmt.Sprintf("the flow %s goes on", f.id) }
