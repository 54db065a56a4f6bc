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

// flow is a running flow.
type flow struct {
	id, kind string
	since    time.Time
}

// running returns the running flows of the types in moneyFlows.
func (w *harness) running(ctx context.Context) (all []flow, err error) {
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

// moneyFlows are the types of flows that must end.
var moneyFlows = []string{
	workflows.TypeOnRamp, workflows.TypeOffRamp, workflows.TypeMomoPayout, workflows.TypeReturnDeposit, workflows.TypeCryptoPayout,
	workflows.TypeLatePayment, workflows.TypeLatePayout, workflows.TypeTransfer, workflows.TypeCreateWallet,
	workflows.TypeOTCDeposit, workflows.TypeOTCWithdrawal, workflows.TypeSwap, workflows.TypeMultisigProposal,
}

// watches reports whether a flow may still run at the end: the wait for late money lasts a day.
func (f flow) watches() bool { return f.kind == workflows.TypeLatePayment }

// object returns the id of the flow's object; zero when it has no single one.
func (f flow) object() uuid.UUID {
	_, id := workflows.ObjectOf(f.id)
	return id
}

func (f flow) String() string { return fmt.Sprintf("the flow %s still runs", f.id) }
