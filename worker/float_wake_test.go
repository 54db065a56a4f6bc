package worker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
	"kivuko/worker"
	"kivuko/workflows"
)

// suspended is a store in which the operator refuses our credential.
type suspended struct{ activities.FloatStore }

func (s suspended) FloatState(ctx context.Context, provider string) (exchange.FloatState, error) {
	state, err := s.FloatStore.FloatState(ctx, provider)
	state.Breaker.OpenedAt = time.Now()
	return state, err
}

// line is a Temporal that answers every signal the same and keeps what was sent.
type line struct {
	client.Client
	answer error
	sent   []string
}

func (l *line) SignalWorkflow(_ context.Context, id, _, signal string, _ any) error {
	l.sent = append(l.sent, id+" "+signal)
	return l.answer
}

// waits has a sale of 10 USDT wait for float, of which other payouts hold all but some.
func (w *till) waits(left string) uuid.UUID {
	w.t.Helper()
	m := storetest.NewSellers(w.t, w.store) // which brings 1,000,000 KES of float
	o := storetest.TakeCrypto(w.t, w.store, m.Sale(w.t, w.store, "10"))
	if err := w.store.SetOrderDetail(w.t.Context(), o.ID, exchange.WaitFloat); err != nil {
		w.t.Fatal(err)
	}
	payouts := exchange.House(exchange.AccMomoPayout, money.KES)
	a, err := w.store.Account(w.t.Context(), payouts)
	if err == nil {
		err = w.store.Post(w.t.Context(), exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
			ID: storetest.NewID(w.t), Key: "elsewhere", Account: payouts, Amount: a.Available().Sub(money.Must(money.KES, left)), ObjectType: "test", ObjectID: o.ID,
		}}}})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return o.ID
}

// A sale that waits for float is notified when a movement brings some, by the run that books it or by one that finds it
// booked; a failed notice never fails the movement. A failed movement, and suspended payouts, notify no sale.
func TestMovedFloatWakesSales(t *testing.T) {
	w := newTill(t)
	order := w.waits("1000")
	w.deaf = true
	id := w.begin()
	if got, err := w.move(id); err != nil || got.Status != exchange.FloatCompleted {
		t.Fatalf("%+v, %v", got, err)
	}
	if got := w.notified(); !slices.Equal(got, []uuid.UUID{order}) {
		t.Errorf("notified %v, want %s", got, order)
	}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(w.part)
	look := func(move uuid.UUID) {
		t.Helper()
		if _, err := env.ExecuteActivity(w.part.CheckFloatMove, activities.CheckFloatMoveInput{MoveID: move}); err != nil {
			t.Fatal(err)
		}
	}
	look(id)
	if got := w.notified(); !slices.Equal(got, []uuid.UUID{order}) {
		t.Errorf("after a run that died: notified %v", got)
	}
	rows := w.part.Store
	w.part.Store = suspended{rows}
	look(id)
	if got := w.notified(); len(got) > 0 {
		t.Errorf("while payouts are suspended: notified %v", got)
	}
	w.part.Store = rows
	failed := w.begin()
	if _, _, err := w.store.ClaimFloatMove(t.Context(), exchange.FloatMove{ID: failed, CallbackToken: "0123456789abcdef", StatusToken: "fedcba9876543210"}); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, w.store, `UPDATE float_moves SET claimed_at = claimed_at - interval '10 minutes' WHERE id = $1`, failed)
	if _, err := w.store.SettleFloatMove(t.Context(), failed, exchange.FloatFailed, exchange.Observation{}, "", exchange.System("float")); err != nil {
		t.Fatal(err)
	}
	look(failed)
	if got := w.notified(); len(got) > 0 {
		t.Errorf("by a movement that failed: %v", got)
	}
}

// A sale that waits for float is notified only when the operator's report shows more than the previous one.
func TestReportOfMoreFloatWakesSales(t *testing.T) {
	w := newTill(t)
	order := w.waits("500000")
	if err := w.operator.Fund("utility", -99_000); err != nil { // the operator says 1,000
		t.Fatal(err)
	}
	watch := func(what string, want ...uuid.UUID) {
		t.Helper()
		env := w.env()
		env.ExecuteWorkflow(workflows.TypeWatchFloat)
		var found workflows.FloatWatched
		if err := env.GetWorkflowError(); err != nil || env.GetWorkflowResult(&found) != nil || !found.Notified {
			t.Fatalf("%s: %+v, %v", what, found, env.GetWorkflowError())
		}
		if got := w.notified(); !slices.Equal(got, want) {
			t.Errorf("%s: notified %v, want %v", what, got, want)
		}
	}
	watch("too little")
	if err := w.operator.Fund("utility", 10_000); err != nil {
		t.Fatal(err)
	}
	watch("more", order)
	watch("as much")
	if err := w.operator.Fund("utility", -1_000); err != nil {
		t.Fatal(err)
	}
	watch("less")
}

// A flow that has ended is no error. A flow that can't be notified now is.
func TestFloatSignal(t *testing.T) {
	away, order, attempt := errors.New("away"), uuid.New(), uuid.New()
	for name, c := range map[string]struct{ answer, want error }{
		"notified": {}, "over": {serviceerror.NewNotFound("over"), nil}, "away": {away, away},
	} {
		for _, who := range []struct {
			waits exchange.FloatWaiter
			want  []string
		}{
			{exchange.FloatWaiter{OrderID: order}, []string{workflows.OffRampID(order) + " float"}},
			{
				exchange.FloatWaiter{OrderID: order, RefundID: uuid.New(), AttemptID: attempt},
				[]string{workflows.OnRampID(order) + " float", workflows.LatePaymentID(attempt) + " float"},
			},
		} {
			temporal := &line{answer: c.answer}
			err := worker.FloatFlows{Client: temporal}.WakeForFloat(t.Context(), who.waits)
			if !errors.Is(err, c.want) || !slices.Equal(temporal.sent, who.want) {
				t.Errorf("%s: %v, sent %v", name, err, temporal.sent)
			}
		}
	}
}
