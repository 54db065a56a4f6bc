package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/daraja"
	"kivuko/momo/sandbox"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
	"kivuko/workflows/workflowstest"
)

// list is the operator, whose list begins with a line that is no payment and one that the database refuses, and
// which can be made to fail.
type list struct {
	*daraja.Client
	failing error
	pages   int
}

func (l *list) Pull(ctx context.Context, from, to time.Time, offset int) ([]exchange.Observation, int, bool, error) {
	if l.failing != nil {
		return nil, 0, false, l.failing
	}
	l.pages++
	seen, next, more, err := l.Client.Pull(ctx, from, to, offset)
	if offset == 0 && err == nil {
		seen = append([]exchange.Observation{
			{State: exchange.SeenUnknown, Code: "c2b-something", At: from},
			{State: exchange.SeenSucceeded, Source: exchange.SourceStatement, Receipt: "TKL0000XYZ", At: from},
		}, seen...)
	}
	return seen, next, more, err
}

// statementHarness is a database and an operator, and what the flow woke.
type statementHarness struct {
	t        *testing.T
	store    *store.Store
	operator *sandbox.Server
	list     *list
	attempts map[uuid.UUID]string // the flows of those that may be woken
	running  map[string]bool      // flows that take a signal
	signals  []string
	watches  []workflows.LatePaymentInput
}

func newStatementHarness(t *testing.T) *statementHarness {
	t.Helper()
	operator, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = operator.Close() })
	client, err := daraja.New(daraja.Config{
		BaseURL: operator.URL(), ConsumerKey: sandbox.DefaultConsumerKey, ConsumerSecret: sandbox.DefaultConsumerSecret,
		Shortcode: sandbox.DefaultShortcode, Passkey: sandbox.DefaultPasskey, CallbackBase: "http://127.0.0.1:1/cb",
	})
	if err != nil {
		t.Fatal(err)
	}
	return &statementHarness{t: t, store: storetest.New(t), operator: operator, list: &list{Client: client}, attempts: map[uuid.UUID]string{}, running: map[string]bool{}}
}

func (w *statementHarness) reconcile(flow any) workflows.PaymentsReconciled {
	w.t.Helper()
	env := workflowstest.NewEnvironment(workflowstest.Options{})
	env.SetStartTime(time.Now())
	w.signals, w.watches = nil, nil
	env.RegisterActivity(&activities.Statement{Store: w.store, Operator: w.list, Now: time.Now})
	env.RegisterWorkflowWithOptions(func(_ workflow.Context, in workflows.LatePaymentInput) (workflows.LatePaymentResult, error) {
		w.watches = append(w.watches, in)
		return workflows.LatePaymentResult{}, nil
	}, workflow.RegisterOptions{Name: workflows.TypeLatePayment})
	for attempt, home := range w.attempts {
		for _, id := range []string{home, workflows.LatePaymentID(attempt)} {
			ref := workflows.CallbackRef{AttemptID: attempt}
			env.OnSignalExternalWorkflow("default-test-namespace", id, "", workflows.SignalCallback, ref).Return(func(string, string, string, string, any) error {
				if !w.running[id] {
					return serviceerror.NewNotFound("no such flow")
				}
				w.signals = append(w.signals, id)
				return nil
			})
		}
	}
	env.ExecuteWorkflow(flow)
	if err := env.GetWorkflowError(); err != nil {
		w.t.Fatal(err)
	}
	var out workflows.PaymentsReconciled
	if err := env.GetWorkflowResult(&out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *statementHarness) pay(reference string, amount int64) string {
	w.t.Helper()
	receipt, err := w.operator.Pay("254712345678", reference, amount)
	if err != nil {
		w.t.Fatal(err)
	}
	return receipt
}

func (w *statementHarness) unmatched() int {
	w.t.Helper()
	_, total, err := w.store.ListExceptions(w.t.Context(), store.ExceptionFilter{Kind: exchange.ExcUnmatched}, store.Page{Number: 1, Size: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	return total
}

func TestTheOperatorsListIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newStatementHarness(t)
	m := storetest.NewMarket(t, w.store)
	waits, over := storetest.Attempt(t, w.store, m.Order(t, w.store, "10")), storetest.Attempt(t, w.store, m.Order(t, w.store, "5"))
	w.running[waits.WorkflowID] = true
	w.attempts[waits.ID], w.attempts[over.ID] = waits.WorkflowID, over.WorkflowID
	paid := w.pay(waits.Reference, waits.Amount.Decimal().IntPart())
	w.pay(over.Reference, 20) // not what was asked for: its flow decides, and this one is over
	const strangers = 104     // more than a page
	for range strangers {
		w.pay("RENT", 10)
	}
	// A payment that we know and the operator's list lacks.
	_, err := w.store.TakeReceipt(t.Context(), exchange.Observation{
		Source: exchange.SourceConfirmation, Receipt: storetest.Receipt(t), Amount: money.Must(money.KES, "33"), Reference: "X", At: time.Now().Add(-time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := w.reconcile(workflows.ReconcilePayments)
	if !got.Whole || got.Found != strangers+2 || got.SetAside != strangers || got.Quarantined != 2 || got.Absent != 1 || got.Woken != 2 || w.list.pages < 3 {
		t.Errorf("%+v after %d pages", got, w.list.pages)
	}
	if len(w.signals) != 1 || w.signals[0] != waits.WorkflowID {
		t.Errorf("woke %v", w.signals)
	}
	if len(w.watches) != 1 || w.watches[0].AttemptID != over.ID || w.watches[0].OrderID != over.OrderID {
		t.Errorf("watches over %+v", w.watches)
	}
	if n := w.unmatched(); n != strangers {
		t.Errorf("%d exceptions", n)
	}
	// Nothing is done twice; the sweep sees the same.
	for _, flow := range []any{workflows.ReconcilePayments, workflows.SweepPayments} {
		got = w.reconcile(flow)
		if got.Found != 0 || got.SetAside != 0 || got.Quarantined > 2 || w.unmatched() != strangers {
			t.Errorf("again: %+v, %d exceptions", got, w.unmatched())
		}
	}
	// The prompt's own result comes last and pays the order.
	o := exchange.Observation{State: exchange.SeenSucceeded, Receipt: paid, Amount: waits.Amount, Source: exchange.SourceCallback}
	if out, err := w.store.AcceptPayment(t.Context(), waits.ID, o, time.Time{}); err != nil || out.Kind != exchange.PaidExact {
		t.Errorf("%s, %v", out.Kind, err)
	}
}

// A list that can't be read leaves nothing half done, and the next run reads it again.
func TestAListThatCantBeRead(t *testing.T) {
	t.Parallel()
	w := newStatementHarness(t)
	w.pay("RENT", 10)
	w.list.failing = exchange.Errorf(exchange.CodeInternal, "the product is not enabled")
	if got := w.reconcile(workflows.ReconcilePayments); got.Whole || got.Found != 0 || got.Absent != 0 {
		t.Errorf("%+v", got)
	}
	w.list.failing = nil
	if got := w.reconcile(workflows.ReconcilePayments); !got.Whole || got.Found != 1 || got.SetAside != 1 {
		t.Errorf("%+v", got)
	}
	all, _, err := w.store.ListC2B(t.Context(), store.C2BFilter{}, store.Page{Number: 1, Size: 10})
	if err != nil || len(all) != 1 || all[0].ExceptionID == uuid.Nil || all[0].PartyHash != exchange.Phone("254712345678").Hash() {
		t.Errorf("%+v, %v", all, err)
	}
}
