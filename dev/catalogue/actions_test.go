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

// fault asks the operator for a behaviour: once, unless told otherwise.
func (w *world) fault(behaviour, op string, times ...int) {
	w.t.Helper()
	f := sandbox.Fault{Behaviour: behaviour, Op: op}
	if len(times) > 0 {
		f.Times = times[0]
	}
	if err := w.operator.Set(f); err != nil {
		w.t.Fatal(err)
	}
}

// late lets the operator do what it is late with.
func (w *world) late() {
	w.operator.Release()
	if err := w.operator.Settle(w.t.Context()); err != nil {
		w.t.Error(err)
	}
}

// lastOrder is the id of the newest order.
func (w *world) lastOrder() uuid.UUID {
	w.t.Helper()
	all, _, err := w.store.ListOrders(w.t.Context(), store.Everything(), store.OrderFilter{}, store.Page{Number: 1, Size: 1})
	if err != nil || len(all) == 0 {
		w.t.Fatalf("no order: %v", err)
	}
	return all[0].ID
}

// decide hands a person's decision about late money to the watch over it, as the API does.
func (w *world) decide(env *testsuite.TestWorkflowEnvironment, verb, note string) {
	for _, a := range w.attempts(w.lastOrder()) {
		objectType, object := activities.ObjectOrder, a.OrderID
		for _, x := range w.exceptions() {
			if x.AttemptID == a.ID {
				objectType, object = activities.ObjectException, x.ID
			}
		}
		ref := w.command(objectType, object, verb, note)
		_ = env.SignalWorkflowByID(workflows.LatePaymentID(a.ID), verb, ref) // a prompt without a watch brings nothing
	}
}

// setAside checks the one exception and what became of it.
func (w *world) setAside(kind exchange.ExceptionKind, status exchange.ExceptionStatus) {
	w.t.Helper()
	all := w.exceptions()
	if len(all) != 1 || all[0].Kind != kind || all[0].Status != status {
		w.t.Errorf("the exceptions are %+v, want one %s that is %s", all, kind, status)
	}
}

// paidBack checks that the payer got so many shillings, in one payout.
func (w *world) paidBack(r exchange.OrderRequest, amount int64) {
	w.t.Helper()
	out := w.effects(sandbox.Payout)
	if len(out) != 1 || out[0].Phone != r.Phone || out[0].Amount != amount {
		w.t.Errorf("paid back %+v, want %d to %s", out, amount, r.Phone)
	}
}
