package catalogue

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/momo/sandbox"
	"kivuko/store"
	"kivuko/workflows"
)

// fault sets a fault of the operator: once, unless times says otherwise.
func (w *harness) fault(behaviour, op string, times ...int) {
	w.t.Helper()
	f := sandbox.Fault{Behaviour: behaviour, Op: op}
	if len(times) > 0 {
		f.Times = times[0]
	}
	if err := w.operator.Set(f); err != nil {
		w.t.Fatal(err)
	}
}

// late releases the operator's late results.
func (w *harness) late() {
	w.operator.Release()
	if err := w.operator.Settle(w.t.Context()); err != nil {
		w.t.Error(err)
	}
}

// lastOrder returns the id of the newest order.
func (w *harness) lastOrder() uuid.UUID {
	w.t.Helper()
	all, _, err := w.store.ListOrders(w.t.Context(), store.Everything(), store.OrderFilter{}, store.Page{Number: 1, Size: 1})
	if err != nil || len(all) == 0 {
		w.t.Fatalf("no order: %v", err)
	}
	return all[0].ID
}

// decide sends an operator's decision about late money to its flow, as the API does.
func (w *harness) decide(env *testsuite.TestWorkflowEnvironment, verb, note string) {
	for _, a := range w.attempts(w.lastOrder()) {
		objectType, object := activities.ObjectOrder, a.OrderID
		for _, x := range w.exceptions() {
			if x.AttemptID == a.ID {
				objectType, object = activities.ObjectException, x.ID
			}
		}
		ref := w.command(objectType, object, verb, note)
		_ = env.SignalWorkflowByID(workflows.LatePaymentID(a.ID), verb, ref) // a prompt without such a flow has no late money
	}
}

// setAside checks the only exception and its outcome.
func (w *harness) setAside(kind exchange.ExceptionKind, status exchange.ExceptionStatus) {
	w.t.Helper()
	all := w.exceptions()
	if len(all) != 1 || all[0].Kind != kind || all[0].Status != status {
		w.t.Errorf("the exceptions are %+v, want one %s that is %s", all, kind, status)
	}
}

// paidBack checks that the payer got the amount in one payout.
func (w *harness) paidBack(r exchange.OrderRequest, amount int64) {
	w.t.Helper()
	out := w.effects(sandbox.Payout)
	if len(out) != 1 || out[0].Phone != r.Phone || out[0].Amount != amount {
		w.t.Errorf("paid back %+v, want %d to %s", out, amount, r.Phone)
	}
}
