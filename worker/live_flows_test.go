package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/worker"
	"kivuko/workflows"
)

// board is a Temporal with some flows: running ones by their ids, with the ids of the children that they wait for.
type board struct {
	client.Client
	running map[string][]string
	started map[string]any
	sent    []string
}

func (b *board) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	children, runs := b.running[id]
	if !runs {
		return nil, serviceerror.NewNotFound("there is no such flow")
	}
	d := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &common.WorkflowExecution{WorkflowId: id}, Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}
	for _, child := range children {
		d.PendingChildren = append(d.PendingChildren, &workflowpb.PendingChildExecutionInfo{WorkflowId: child})
	}
	return d, nil
}

func (b *board) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	b.started[o.ID] = args[0]
	b.running[o.ID] = nil
	return nil, nil
}

func (b *board) SignalWorkflow(_ context.Context, id, _, signal string, _ any) error {
	b.sent = append(b.sent, id+" "+signal)
	return nil
}

// D5: a paid order whose flow was gone waited for ever, and nothing showed it. Now the flow of every row that is not at its end is
// looked for, missing ones are started, and one that waits for a child that has ended is made to look again.
func TestD5_LiveRowsHaveFlows(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	paid, pending, over := m.Order(t, s, "10"), m.Order(t, s, "5"), m.Order(t, s, "5")
	if _, err := s.AcceptPayment(t.Context(), storetest.Attempt(t, s, paid).ID, storetest.Paid(t, paid.Price.Fiat), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CloseOrder(t.Context(), over.ID, exchange.OrderCancelled, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	sellers := storetest.NewSellers(t, s)
	sale := storetest.TakeCrypto(t, s, sellers.Sale(t, s, "10"))
	late := lateMoney(t, s, m.Order(t, s, "5"))

	b := &board{running: map[string][]string{workflows.OnRampID(pending.ID): nil, workflows.OffRampID(sale.ID): {"momo-payout:ended"}}, started: map[string]any{}}
	suite := testsuite.WorkflowTestSuite{}
	env := suite.NewTestActivityEnvironment()
	orders := &activities.Orders{Store: s, Flows: worker.LiveFlows{Client: b}}
	env.RegisterActivity(orders)
	compare := func() (done activities.Resumed) {
		t.Helper()
		v, err := env.ExecuteActivity(orders.ResumeFlows, activities.ResumeInput{Since: time.Now().Add(time.Minute)})
		if err == nil {
			err = v.Get(&done)
		}
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if done := compare(); done.Gone != 2 || done.Started != 2 || done.Reminded != 1 || done.More {
		t.Errorf("the first comparison: %+v; started %v", done, b.started)
	}
	in, ok := b.started[workflows.OnRampID(paid.ID)].(workflows.OnRampInput)
	if !ok || in.IntentID == uuid.Nil || in.IntentID != intentOf(t, s, paid.ID) {
		t.Errorf("the paid order's flow is started with %+v", in)
	}
	if in, ok := b.started[workflows.LatePaymentID(late)].(workflows.LatePaymentInput); !ok || in.AttemptID != late {
		t.Errorf("the watch over late money is started with %+v; started are %v", in, b.started)
	}
	if len(b.sent) != 1 || b.sent[0] != workflows.OffRampID(sale.ID)+" "+workflows.SignalResume {
		t.Errorf("sent %v", b.sent)
	}
	b.running[workflows.OffRampID(sale.ID)] = nil
	if done := compare(); done.Gone+done.Started+done.Reminded != 0 || done.Rows != 4 {
		t.Errorf("the second comparison: %+v", done)
	}
	// What changed a moment ago is left to its step.
	rows, err := s.LiveRows(t.Context(), time.Now().Add(-time.Hour), exchange.LivePlace{}, 10)
	if err != nil || len(rows) != 0 {
		t.Errorf("%d rows that have not changed for an hour, %v", len(rows), err)
	}
}

// intentOf is the intent that opened an order.
func intentOf(t *testing.T, s *store.Store, order uuid.UUID) uuid.UUID {
	t.Helper()
	var id uuid.UUID
	if err := storetest.Owner(t, s).QueryRowContext(t.Context(), `SELECT intent_id FROM orders WHERE id = $1`, order).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// lateMoney has an order paid after it has ended, and returns the attempt, whose money waits for a decision.
func lateMoney(t *testing.T, s *store.Store, o exchange.Order) uuid.UUID {
	t.Helper()
	a := storetest.Attempt(t, s, o)
	_, err := s.RecordFailure(t.Context(), a.ID, exchange.Observation{State: exchange.SeenFailed, Soft: true, Code: "1037"})
	if err == nil {
		_, err = s.CloseOrder(t.Context(), o.ID, exchange.OrderCancelled, exchange.DetailExpired, exchange.Asked{})
	}
	if err == nil {
		_, err = s.AcceptPayment(t.Context(), a.ID, storetest.Paid(t, o.Price.Fiat), time.Time{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}
