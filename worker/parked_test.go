package worker_test

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/store/storetest"
)

// index is what Temporal's list says.
type index []exchange.ParkedFlow

func (i index) ParkedFlows(context.Context) ([]exchange.ParkedFlow, error) { return i, nil }

// A terminated flow leaves its row behind and a reset one may have none: the comparison with Temporal's list repairs both.
// It ignores recent changes, which may not be in the list yet.
func TestListOfParkedFlowsIsRepaired(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	old := time.Now().Add(-time.Hour)
	flow := func(id, reason string, since time.Time) exchange.ParkedFlow {
		return exchange.ParkedFlow{WorkflowID: id, RunID: "run", Type: "Transfer", Reason: reason, Since: since}
	}
	for _, p := range []exchange.ParkedFlow{
		flow("same", "step-failed", old), flow("terminated", "step-failed", old), flow("other reason", "step-failed", old),
		flow("just parked", "step-failed", time.Now()), flow("just parked anew", "cold-wallet", time.Now()),
	} {
		if err := s.KeepParked(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	orders := &activities.Orders{Store: s, Index: index{
		flow("same", "step-failed", old), flow("other reason", "cold-wallet", old), flow("reset", "step-failed", old),
		flow("just parked anew", "step-failed", old), flow("just begun", "step-failed", time.Now()),
	}}
	suite := testsuite.WorkflowTestSuite{}
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(orders)
	repair := func() (done activities.RepairedParked) {
		t.Helper()
		v, err := env.ExecuteActivity(orders.RepairParked)
		if err == nil {
			err = v.Get(&done)
		}
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if done := repair(); done != (activities.RepairedParked{Added: 2, Removed: 1}) {
		t.Errorf("repaired: %+v", done)
	}
	if done := repair(); done != (activities.RepairedParked{}) {
		t.Errorf("repaired twice: %+v", done)
	}
	all, _, err := s.ListParked(t.Context(), exchange.ParkedFilter{Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range all {
		got[p.WorkflowID] = p.Reason
	}
	want := map[string]string{
		"same": "step-failed", "other reason": "cold-wallet", "reset": "step-failed", "just parked": "step-failed", "just parked anew": "cold-wallet",
	}
	if len(got) != len(want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
	for id, reason := range want {
		if got[id] != reason {
			t.Errorf("%s is listed with %q, want %q", id, got[id], reason)
		}
	}
}
